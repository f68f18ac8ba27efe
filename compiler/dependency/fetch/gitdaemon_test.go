package fetch

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// gitDaemon serves the repositories in a folder over git:// and returns its address. For
// each connection it runs git's daemon as inetd would, so it does not have to guess a port.
func gitDaemon(t testing.TB, root string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				file, err := connection.(*net.TCPConn).File()
				if err != nil {
					return
				}
				defer file.Close()
				cmd := exec.Command("git", "daemon", "--inetd", "--export-all", "--base-path="+root)
				cmd.Env = append(os.Environ(), "REMOTE_ADDR=127.0.0.1")
				cmd.Stdin, cmd.Stdout = file, file
				_ = cmd.Run()
			}()
		}
	}()
	return "127.0.0.1:" + strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
