package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	daemon "github.com/go-git/go-git/v5/plumbing/transport/git"
	"golang.org/x/net/proxy"

	"github.com/kalypso-io/kalypso/internal/address"
)

// reachOf returns the reach for a repository that git's configuration has at a different URL
// from the given one: the people of this machine have chosen its place.
func reachOf(reach address.Reach, given, is string) (address.Reach, error) {
	if !reach.Remote || given == is {
		return reach, nil
	}
	a, ok := address.Parse(is)
	if !ok || a.Scheme == "file" && a.Climbs {
		return reach, errors.New(
			"git's configuration has the repository in a folder, and the URL leads out of it")
	}
	reach.But = a.Server()
	return reach, nil
}

// sshWithin is the scheme of a proxy of ssh for go-git, which is not a real proxy. It connects
// within a reach, and the only server of this reach is the host of the URL.
const sshWithin = "kalypso-within"

func init() {
	proxy.RegisterDialerType(sshWithin, func(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
		return &sshDialer{reach: address.Reach{Remote: true, But: u.Host}}, nil
	})
}

// sshProxy returns the URL for a reach as a proxy of ssh; "" for the environment's.
func sshProxy(reach address.Reach) string {
	if !reach.Remote {
		return ""
	}
	return (&url.URL{Scheme: sshWithin, Host: reach.But}).String()
}

// sshDialer connects within a reach, or by the proxy of the environment, as go-git does
// otherwise. A proxy resolves names itself, and may be anywhere.
type sshDialer struct {
	reach address.Reach
	to    string // the only server that the reach is for; "" for all, and for the proxy
}

var _ proxy.ContextDialer = (*sshDialer)(nil)

// Dial is DialContext.
func (d *sshDialer) Dial(network, server string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, server)
}

// DialContext connects to HOST:PORT.
func (d *sshDialer) DialContext(ctx context.Context, network, server string) (net.Conn, error) {
	switch d.to {
	case "":
		if err := d.reach.CheckName(server); err != nil {
			return nil, err
		}
		by := proxy.FromEnvironmentUsing(&sshDialer{d.reach, server})
		if by, ok := by.(proxy.ContextDialer); ok {
			return by.DialContext(ctx, network, server)
		}
		return by.Dial(network, server)
	case server:
		return d.reach.Dial(ctx, &net.Dialer{}, network, server)
	}
	return (&net.Dialer{}).DialContext(ctx, network, server)
}

// hosts returns the names or addresses that a session connects to. It returns the host, or its
// addresses if only these can be checked against the reach. The session tries them in turn. Over
// HTTP and ssh each connection is checked when it is made. go-git cannot do this for git://, so a
// server with several hosts at one address does not get the name of the host.
func (s *server) hosts(ctx context.Context) ([]string, error) {
	if s.endpoint.Protocol != "git" || !s.reach.Remote {
		return []string{s.endpoint.Host}, nil
	}
	host, port := strings.Trim(s.endpoint.Host, "[]"), s.endpoint.Port
	if port <= 0 {
		port = daemon.DefaultPort
	}
	server := net.JoinHostPort(host, strconv.Itoa(port))
	if err := s.reach.CheckName(server); err != nil {
		return nil, err
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("find the host: %w", err)
	}
	var out []string
	for _, ip := range all {
		if err := s.reach.Check(server, ip); err != nil {
			return nil, err
		}
		out = append(out, ip.Unmap().String())
	}
	return out, nil
}
