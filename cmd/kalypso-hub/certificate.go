package main

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate reads a certificate again when one of its files changes. Where they cannot be used,
// the one before is served.
type certificate struct {
	cert, key string
	// problem is called once for each problem, and solved when there is none any more.
	problem func(error)
	solved  func(text string)

	mu      sync.Mutex
	changed [2]time.Time // of the files
	is      *tls.Certificate
	said    string // the problem that is known
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.read()
	switch {
	case c.is == nil:
		return nil, err
	case err == nil && c.said != "":
		c.said = ""
		c.solved("the certificate of " + c.cert + " can be used again")
	case err != nil && err.Error() != c.said:
		c.said = err.Error()
		c.problem(fmt.Errorf("--tls-cert and --tls-key: the certificate of before is served: %w", err))
	}
	return c.is, nil
}

// read reads the files where they have changed. What cannot be used is read again each time: it
// may be written just now.
func (c *certificate) read() error {
	var changed [2]time.Time
	for i, name := range []string{c.cert, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		changed[i] = info.ModTime()
	}
	if c.is != nil && changed == c.changed && c.said == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.cert, c.key, err)
	}
	c.is, c.changed = &pair, changed
	return nil
}
