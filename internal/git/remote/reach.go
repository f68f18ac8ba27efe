package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	daemon "github.com/go-git/go-git/v5/plumbing/transport/git"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/net/proxy"

	"github.com/kalypso-io/kalypso/internal/address"
)

// reachOf returns the reach for a repository that git's configuration has at another URL than
// the one that was given: where that is, the people of this machine have said.
func reachOf(reach address.Reach, given, is string) (address.Reach, error) {
	if !reach.Remote || given == is {
		return reach, nil
	}
	a, ok := address.Parse(is)
	if !ok || a.Scheme == "file" && a.Climbs {
		return reach, errors.New("git's configuration has the repository in a folder, and the URL leads out of it")
	}
	reach.But = a.Server()
	return reach, nil
}

// check resolves the host of an endpoint, and returns an error where a connection to it is not
// within the reach. That of HTTP checks its connections itself.
func (s *server) check(ctx context.Context) error {
	port := map[string]int{"ssh": gitssh.DefaultPort, "git": daemon.DefaultPort}[s.endpoint.Protocol]
	if port == 0 || !s.reach.Remote {
		return nil
	}
	if s.endpoint.Port > 0 {
		port = s.endpoint.Port
	}
	host := strings.Trim(s.endpoint.Host, "[]")
	to := net.JoinHostPort(host, strconv.Itoa(port))
	if err := s.reach.CheckName(to); err != nil || s.endpoint.Protocol == "ssh" && proxy.FromEnvironment() != proxy.Direct {
		return err // a proxy resolves names
	}
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return fmt.Errorf("find the host: %w", err)
	}
	for _, ip := range all {
		if err := s.reach.Check(to, ip); err != nil {
			return err
		}
	}
	return nil
}
