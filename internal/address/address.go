// Package address parses addresses of sources: URLs, and user@host:path in the form of ssh. The
// parts, and not the text, decide whether an address belongs to a host, or to a folder of it.
package address

import (
	"net/url"
	"strings"
)

// Address is an address in parts.
type Address struct {
	Scheme string // in lower case
	// Authority is the host with its port, as they are written.
	Authority string
	Host      string // in lower case, with brackets for IPv6; "" without a host, as of files
	Port      string // of the scheme if the address has none
	// Usual is the port that may be omitted. It is "" if a port is required, because everybody can
	// read traffic over http.
	Usual string
	// Path are its parts; empty if it Climbs.
	Path []string
	// Climbs is true if a part of the path leads up, or has a slash. Servers interpret such paths
	// differently.
	Climbs bool
}

// Server returns HOST:PORT, in the form in which both are when it is connected to.
func (a Address) Server() string { return a.Host + ":" + a.Port }

var usualPorts = map[string]string{"https": "443", "oci": "443", "ssh": "22", "git": "9418"}

// Parse returns the target of an address. It is not ok if the target cannot be known.
func Parse(address string) (a Address, ok bool) {
	scheme, _, isURL := strings.Cut(address, "://")
	if !isURL { // user@host:path, as ssh writes it
		_, rest, _ := strings.Cut(address, "@")
		end := strings.IndexByte(rest, ']') + 1
		host, path, isSCP := strings.Cut(rest[end:], ":")
		if !isSCP {
			return a, false
		}
		scheme, address = "ssh", "ssh://"+rest[:end]+host+"/"+path
	}
	u, err := url.Parse(address)
	if err != nil {
		return a, false
	}
	scheme = strings.ToLower(scheme)
	a = Address{Scheme: scheme, Authority: u.Host, Host: strings.ToLower(u.Hostname()), Port: u.Port(),
		Usual: usualPorts[scheme]}
	if strings.Contains(a.Host, ":") {
		a.Host = "[" + a.Host + "]"
	}
	switch {
	case a.Port == "" && scheme == "http":
		a.Port = "80"
	case a.Port == "":
		a.Port = a.Usual
	}
	for part := range strings.SplitSeq(u.EscapedPath(), "/") {
		part, err := url.PathUnescape(part)
		if err != nil || part == "." || part == ".." || strings.ContainsAny(part, `/\`) {
			a.Path, a.Climbs = nil, true
			return a, true
		}
		if part != "" {
			a.Path = append(a.Path, part)
		}
	}
	return a, true
}
