package main

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// The same error is logged once in a while, and others each time.
func TestDistinct(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var logged []string
	log := distinct(time.Minute, func() time.Time { return now }, func(err error) { logged = append(logged, err.Error()) })
	for _, text := range []string{"a", "a", "b", "a"} {
		log(errors.New(text))
	}
	now = now.Add(time.Minute)
	log(errors.New("a"))
	if want := []string{"a", "b", "a"}; !slices.Equal(logged, want) {
		t.Errorf("got %v, want %v", logged, want)
	}
}
