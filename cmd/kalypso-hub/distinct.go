package main

import (
	"sync"
	"time"
)

// mostDistinct is how many errors are known at once.
const mostDistinct = 1000

// distinct returns log without errors that it got before, of the same text, within a time: a database
// that does not answer fails each request.
func distinct(every time.Duration, now func() time.Time, log func(error)) func(error) {
	var mu sync.Mutex
	last := map[string]time.Time{}
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		text, at := err.Error(), now()
		if since := at.Sub(last[text]); since >= 0 && since < every {
			return
		}
		if len(last) >= mostDistinct {
			clear(last)
		}
		last[text] = at
		log(err)
	}
}
