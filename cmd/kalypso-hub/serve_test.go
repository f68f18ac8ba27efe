package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
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

// A new certificate is served without a restart. If it cannot be used, the previous one stays in
// use.
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
	// serves checks which certificate a handshake gets, twice, and the new lines of the log.
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

// Of more connections than there may be, some wait until others end.
func TestConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most = 2
	served, warned := make(chan string, 100), make(chan error, 100)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { served <- r.URL.Path })}
	go func() { _ = s.Serve(bounded(s, listener, most, func(err error) { warned <- err })) }()
	t.Cleanup(func() { _ = s.Close() })
	connect := func(n int) net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: h\r\n\r\n", n); err != nil {
			t.Fatal(err)
		}
		return c
	}
	answer := func(c net.Conn) {
		t.Helper()
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
	first, second := connect(0), connect(1)
	answer(first)
	answer(second)
	third := connect(2)
	if _, err := fmt.Fprint(first, "GET /again HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	answer(first) // an open connection continues
	_ = second.Close()
	answer(third)
	var order []string
	for range 4 {
		order = append(order, <-served)
	}
	if order[2] != "/again" || order[3] != "/2" {
		t.Errorf("it has answered %q", order)
	}
	if len(warned) == 0 {
		t.Error("nobody was told")
	}
	for files, want := range map[uint64]int{1024: 896, 1 << 20: maxConnections, math.MaxUint64: maxConnections} {
		if is := connections(files); is != want {
			t.Errorf("of %d files, %d are connections", files, is)
		}
	}
}

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
