package export

import (
	"math"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0s":                          0,
		"90s":                         90 * time.Second,
		"1h30m":                       90 * time.Minute,
		"7d":                          7 * 24 * time.Hour,
		"1d1d":                        48 * time.Hour,
		"106751d":                     106751 * 24 * time.Hour,
		"106752d":                     math.MaxInt64,
		"106751d24h":                  math.MaxInt64,
		"99999999999999999999999999d": math.MaxInt64,
	} {
		var got span
		if err := got.UnmarshalText([]byte(text)); err != nil || time.Duration(got) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(got), err)
		}
	}
}
