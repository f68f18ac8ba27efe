package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// newPair returns a certificate with a serial number, and its key.
func newPair(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// A new certificate is served without a restart, and what cannot be used takes nothing from the one before.
func TestCertificate(t *testing.T) {
	folder := t.TempDir()
	var said []string
	c := &certificate{
		cert: filepath.Join(folder, "tls.crt"), key: filepath.Join(folder, "tls.key"),
		problem: func(err error) { said = append(said, err.Error()) }, solved: func(text string) { said = append(said, text) },
	}
	if _, err := c.get(nil); err == nil {
		t.Error("it starts without a certificate")
	}
	at := time.Now().Add(-time.Hour)
	write := func(name string, data []byte) {
		t.Helper()
		at = at.Add(time.Second)
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	first, firstKey := newPair(t, 1)
	write(c.cert, first)
	write(c.key, firstKey)
	s.Listener = tls.NewListener(s.Listener, &tls.Config{GetCertificate: c.get})
	s.Start()
	defer s.Close()
	// serves says which certificate a handshake gets, twice, and what the log has since.
	serves := func(what string, serial int64, words ...string) {
		t.Helper()
		for range 2 {
			to, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			if got := to.ConnectionState().PeerCertificates[0].SerialNumber.Int64(); got != serial {
				t.Errorf("%s: certificate %d is served, not %d", what, got, serial)
			}
			_ = to.Close()
		}
		if len(said) != len(words) || !slices.EqualFunc(said, words, strings.Contains) {
			t.Errorf("%s: the log has %q", what, said)
		}
		said = nil
	}
	serves("the first one", 1)
	second, secondKey := newPair(t, 2)
	write(c.cert, second)
	serves("another key", 1, "the certificate of before is served: "+c.cert+" and "+c.key+": tls: private key does not match public key")
	write(c.key, secondKey)
	serves("a new pair", 2, "can be used again")
	write(c.cert, []byte("broken"))
	serves("broken", 2, "failed to find any PEM data")
	remove(c.cert)
	serves("moved away", 2, "no such file or directory")
	write(c.cert, second)
	serves("back", 2, "can be used again")
	remove(c.key)
	serves("no key", 2, "tls.key: no such file or directory")
	third, thirdKey := newPair(t, 3)
	write(c.key, thirdKey)
	serves("a key that comes first", 2, "does not match")
	write(c.cert, third)
	serves("its certificate", 3, "can be used again")
	write(c.key, firstKey)
	serves("another key again", 3, "does not match")
}
