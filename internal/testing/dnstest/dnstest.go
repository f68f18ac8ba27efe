// Package dnstest lets names lead to addresses, for tests.
package dnstest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Serve makes the process resolve only the names in a map, to their addresses of IPv4, until the
// test ends. A name is in lower case and ends in a dot. No test may run at the same time. It
// returns the number of times that names were resolved to addresses.
func Serve(t testing.TB, names map[string]netip.Addr) (resolved *atomic.Int64) {
	t.Helper()
	resolved = &atomic.Int64{}
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go answer(server, names, resolved)
		return client, nil
	}}
	return resolved
}

// answer answers questions on a connection as DNS has them over TCP (RFC 1035, 4.2.2).
func answer(connection net.Conn, names map[string]netip.Addr, resolved *atomic.Int64) {
	defer connection.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(connection, size[:]); err != nil {
			return
		}
		question := make([]byte, binary.BigEndian.Uint16(size[:]))
		var m dnsmessage.Message
		if _, err := io.ReadFull(connection, question); err != nil || m.Unpack(question) != nil || len(m.Questions) != 1 {
			return
		}
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		asked := m.Questions[0]
		ip, known := names[strings.ToLower(asked.Name.String())]
		switch {
		case !known:
			m.RCode = dnsmessage.RCodeNameError
		case asked.Type == dnsmessage.TypeA:
			header := dnsmessage.ResourceHeader{Name: asked.Name, Type: asked.Type, Class: asked.Class}
			resolved.Add(1)
			m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}}}
		}
		out, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := connection.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}
