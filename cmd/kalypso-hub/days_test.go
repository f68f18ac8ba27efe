package main

import (
	"testing"
	"time"
)

func TestDays(t *testing.T) {
	for text, want := range map[string]days{"180d": days(180 * 24 * time.Hour), "0d": 0, "1d": days(24 * time.Hour)} {
		var d days
		if err := d.Set(text); err != nil || d != want || d.String() != text {
			t.Errorf("%s: %s, %v", text, &d, err)
		}
	}
	for _, text := range []string{"", "d", "180", "-1d", "1.5d", "1h", "99999999999d"} {
		if err := new(days).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
