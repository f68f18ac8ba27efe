package gotemplate

import (
	"encoding/json"
	"testing"

	"github.com/Masterminds/semver/v3"
)

// The numbers come from github.com/mitchellh/hashstructure/v2 with its second format. The original
// Kalypso uses it, so the names and annotations of existing trees contain such numbers.
func TestHash(t *testing.T) {
	same := map[string]any{"host": "db", "ports": []any{1, 2}}
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, "12161962213042174405"}, {"", "14695981039346656037"},
		{"app", "15626571620140684718"},
		{json.Number("12345678901234567890123"), "14040371918681026371"},
		{decimal("1.0"), "15672498220841975484"},
		{true, "12638153115695167454"}, {false, "12638153115695167455"},
		{0, "12161962213042174405"}, {-1, "15446756586918820205"},
		{int64(-1), "15446756586918820205"}, {int32(7), "1189822761878822216"},
		{uint(7), "4865742928595613128"}, {uint8(7), "12638153115695167448"},
		{1.5, "12161883048204943186"}, {float32(1.5), "5558909236794992394"},
		{(*int)(nil), "12161962213042174405"}, {&same, "11373952609727767129"},
		{[]any{}, "0"}, {[]any{nil}, "17263656795266626102"}, {[]any{"a", "b"},
			"2712570657419664240"}, {[]any{"b", "a"}, "8012847830711252742"}, {[]string{"a", "b"},
			"2712570657419664240"}, {[2]int{1, 2}, "7476045177263584794"},
		{[]any{[]any{"a"}, "b"}, "2991656442864774987"},
		{map[string]any{}, "12161962213042174405"},
		{map[string]any{"a": nil}, "8956878207473869894"}, {same, "11373952609727767129"},
		{map[string]any{"a": map[string]any{"b": 1}, "c": map[string]any{"b": 1}}, "12853575789970970927"},
		{map[int]string{1: "a", 2: "b"}, "15921938166619600550"},
	} {
		if got, err := hash(test.value); err != nil || got != test.want {
			t.Errorf("hash of %T %v is %s, want %s: %v", test.value, test.value, got, test.want, err)
		}
	}
	for _, value := range []any{semver.MustParse("1.2.3"), func() {}, []any{make(chan int)}, map[string]any{"f": func() {}}} {
		if got, err := hash(value); err == nil {
			t.Errorf("hash of a %T is %s", value, got)
		}
	}
}
