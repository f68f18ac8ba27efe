package address

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// Dial connects to a server, HOST:PORT, as a dialer does. The error is a *LocalError if the
// server is not within the reach. Dial checks the address of the connection itself: a name
// may lead to another one each time that it is resolved.
func (r Reach) Dial(ctx context.Context, dialer *net.Dialer, network, server string) (net.Conn,
	error) {
	if err := r.CheckName(server); err != nil {
		return nil, err
	}
	checked := *dialer
	checked.Control = func(_, at string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(at)
		if err != nil {
			return err
		}
		return r.Check(server, to.Addr())
	}
	conn, err := checked.DialContext(ctx, network, server)
	if local := (*LocalError)(nil); errors.As(err, &local) {
		return nil, local
	}
	return conn, err
}
