package address

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Reach is which servers may be connected to. The zero value is all.
type Reach struct {
	// Remote leaves out this machine and its own link: addresses that are loopback, link-local
	// and the like, whatever name leads to them.
	Remote bool
	// But is the one server that may be there all the same, as [Address.Server] returns it, or
	// "".
	But string
}

// Or returns the union of two reaches to one source.
func (r Reach) Or(other Reach) Reach {
	if r.Remote && (!other.Remote || r.But == "") {
		return other
	}
	return r
}

// Check returns a *LocalError if a connection to a server, HOST:PORT, at an IP address is not
// within the reach.
func (r Reach) Check(server string, ip netip.Addr) error {
	if !r.Remote || strings.EqualFold(server, r.But) || !isLocal(ip) {
		return nil
	}
	return &LocalError{IP: ip.Unmap()}
}

// CheckName is Check by only the name of a server: its client resolves it.
func (r Reach) CheckName(server string) error {
	host := server[:max(0, strings.LastIndexByte(server, ':'))]
	if !r.Remote || strings.EqualFold(server, r.But) || !IsLocal(host) {
		return nil
	}
	return &LocalError{}
}

// A LocalError is that a server is on this machine or its own link, and must not be.
type LocalError struct {
	IP netip.Addr // invalid if the error is about the name
}

func (e *LocalError) Error() string {
	at := ""
	if e.IP.IsValid() {
		at = fmt.Sprintf(" at %s,", e.IP)
	}
	return "it is" + at +
		" on this machine or its own link, where nothing that a registration brings may lead"
}

// IsLocal reports whether the name of a host, in whatever form resolvers take, is this
// machine or is on its own link. A domain that resolves to such an address is not known here.
func IsLocal(host string) bool {
	name := strings.TrimSuffix(strings.Trim(strings.ToLower(host), "[]"), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		return isLocal(ip)
	}
	// Resolvers take 127.1, 0x7f.1 and 2130706433 for addresses too. No domain ends in a number.
	return isNumber(name[strings.LastIndex(name, ".")+1:])
}

// metadata are the addresses of cloud services that give a machine its credentials, except
// link-local ones: AWS and Google Cloud by IPv6, Alibaba Cloud, Azure.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("fd00:ec2::254"):   true,
	netip.MustParseAddr("fd20:ce::254"):    true,
	netip.MustParseAddr("100.100.100.200"): true,
	netip.MustParseAddr("168.63.129.16"):   true,
}

// isLocal reports whether an address is this machine's, or means its own link.
func isLocal(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsUnspecified() || ip.IsMulticast() ||
		metadata[ip]
}

// isNumber reports whether a label of a host's name is a number, as the WHATWG's URL standard
// has it.
func isNumber(label string) bool {
	_, err := strconv.ParseUint(label, 0, 64)
	return err == nil || label != "" && strings.Trim(label, "0123456789") == ""
}
