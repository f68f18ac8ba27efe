package main

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// certificate reads a certificate again when its file changes.
type certificate struct {
	cert, key string

	mu      sync.Mutex
	changed time.Time
	is      *tls.Certificate
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(c.cert)
	if err != nil {
		return c.is, err
	}
	if c.is != nil && info.ModTime().Equal(c.changed) {
		return c.is, nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		if c.is != nil { // the files are being written
			return c.is, nil
		}
		return nil, err
	}
	c.is, c.changed = &pair, info.ModTime()
	return c.is, nil
}
