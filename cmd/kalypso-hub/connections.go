package main

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"
)

// mostConnections is how many connections a hub has open at once. kalypso observe closes its own after
// each report; what others keep open, for 100,000 clusters at most, takes 20 kB each.
const mostConnections = 120_000

// connections returns how many connections there may be where a program may have so many files open:
// an eighth of them is for the database, and for git.
func connections(files uint64) int {
	return int(min(mostConnections, files-files/8))
}

// bounded lets no more connections be open than there may be: others wait until one ends, and those
// that do nothing end by the timeouts of the server. It calls full when that begins, once a minute at
// most.
func bounded(s *http.Server, listener net.Listener, most int, full func(error)) net.Listener {
	var open atomic.Int64
	warning := rate.Sometimes{Interval: time.Minute}
	s.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) >= int64(most) {
				warning.Do(func() {
					full(fmt.Errorf("%d connections are open, and others wait: is there who opens them and says "+
						"nothing? ulimit -n bounds them, to seven eighths and %d at most", most, mostConnections))
				})
			}
		case http.StateClosed, http.StateHijacked:
			open.Add(-1)
		}
	}
	return netutil.LimitListener(listener, most)
}
