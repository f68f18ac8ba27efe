package build

import "testing"

func TestMostRemovals(t *testing.T) {
	for _, c := range []struct {
		limit    string
		of, want int
	}{
		{"", 100, 25}, {"", 11, 3}, {"", 19, 4}, {"", 0, 3}, {"25%", 100, 25}, {"12.5%", 80, 10}, {"100%", 7, 7}, {"0%", 100, 3},
		{"0", 100, 3}, {"7", 100, 7}, {"500", 100, 500},
	} {
		if got := mostRemovals(c.limit, c.of); got != c.want {
			t.Errorf("%q of %d: got %d, want %d", c.limit, c.of, got, c.want)
		}
	}
}
