package fetch

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kalypso-io/kalypso/compiler/dependency"
	"github.com/kalypso-io/kalypso/internal/testing/remotetest"
)

// trust writes that a host has a key to known_hosts.
func trust(t testing.TB, h *remotetest.SSHServer, name string, key ssh.PublicKey) {
	t.Helper()
	write(t, name, h.KnownHost(key))
}

// runAgent runs an agent with a key, and returns its socket.
func runAgent(t testing.TB, key ed25519.PrivateKey) string {
	t.Helper()
	keys := agent.NewKeyring()
	must(t, keys.Add(agent.AddedKey{PrivateKey: &key}))
	socket := filepath.Join(t.TempDir(), "a")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = agent.ServeAgent(keys, connection)
				_ = connection.Close()
			}()
		}
	}()
	return socket
}

// withSSH puts a program named ssh first in the path. The program prints settings for -G,
// as ssh(1) writes its configuration. If settings is "", there is no ssh at all.
func withSSH(t testing.TB, settings string) {
	t.Helper()
	bin := t.TempDir()
	git, err := exec.LookPath("git")
	must(t, err, os.Symlink(git, filepath.Join(bin, "git")))
	if settings != "" {
		write(t, filepath.Join(bin, "settings"), settings)
		write(t, filepath.Join(bin, "ssh"), "#!/bin/sh\nwhile read -r line; do echo \"$line\"; done < '"+filepath.Join(bin, "settings")+"'\n")
		must(t, os.Chmod(filepath.Join(bin, "ssh"), 0o700))
	}
	t.Setenv("PATH", bin)
}

// sshSource is a repository with one commit on an SSH host, which knows the user.
func sshSource(t testing.TB) (h *remotetest.SSHServer, home string, source dependency.Source) {
	t.Helper()
	home = isolate(t)
	w := newWorkTree(t, filepath.Join(t.TempDir(), "app"))
	w.commit("a", "1")
	h = remotetest.ServeSSH(t)
	return h, home, dependency.Source{Kind: dependency.Git, URL: "ssh://git@" + h.Address + w.dir, Branch: "main"}
}

func TestSSH(t *testing.T) {
	h, home, source := sshSource(t)
	withSSH(t, "")
	known := filepath.Join(home, ".ssh", "known_hosts")

	write(t, known, "")
	_, _, err := quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "~/.ssh/known_hosts does not know 127.0.0.1")
	_, other := remotetest.NewKey(t)
	trust(t, h, known, other.PublicKey())
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "127.0.0.1 has another key than in ~/.ssh/known_hosts")

	trust(t, h, known, h.Key)
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "accepts no key of ~/.ssh or the agent for the user git")
	key := filepath.Join(home, ".ssh", "id_ed25519")
	write(t, key, remotetest.PEM(t, h.Client, password))
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "accepts no key")
	if hint := err.(*AuthError).Hint; !strings.Contains(hint, key) {
		t.Error(hint)
	}

	write(t, key, remotetest.PEM(t, h.Client, ""))
	_, data := resolving(t, source)
	wantFiles(t, data, "a: 1")

	source.URL += "-not"
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*NotFoundError](t, err, "there is no such repository")
}

func TestSSHAgent(t *testing.T) {
	h, home, source := sshSource(t)
	withSSH(t, "")
	trust(t, h, filepath.Join(home, ".ssh", "known_hosts"), h.Key)
	t.Setenv("SSH_AUTH_SOCK", runAgent(t, h.Client))
	_, data := resolving(t, source)
	wantFiles(t, data, "a: 1")
}

// The configuration of ssh sets the address of a host, and the keys for it.
func TestSSHConfig(t *testing.T) {
	h, home, source := sshSource(t)
	known, key := filepath.Join(home, "hosts"), filepath.Join(home, "key")
	trust(t, h, known, h.Key)
	write(t, key, remotetest.PEM(t, h.Client, ""))
	_, path, _ := strings.Cut(strings.TrimPrefix(source.URL, "ssh://"), "/")
	source.URL = "git@work.example.test:/" + path
	host, port, err := net.SplitHostPort(h.Address)
	must(t, err)
	settings := fmt.Sprintf("host work.example.test\nuser git\nhostname %s\nport %s\nproxyjump none\nuserknownhostsfile %s /nowhere\nglobalknownhostsfile /nowhere\n", host, port, known)

	withSSH(t, settings+"identityfile /nowhere\nidentityfile "+key+"\n")
	_, data := resolving(t, source)
	wantFiles(t, data, "a: 1")

	// ssh uses an agent of its own, and only the agent's keys that a file names.
	public, err := ssh.NewPublicKey(h.Client.Public())
	must(t, err)
	socket := runAgent(t, h.Client)
	withSSH(t, settings+"identityagent "+socket+"\nidentitiesonly yes\nidentityfile "+filepath.Join(home, "other")+"\n")
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*AuthError](t, err, "accepts no key")
	write(t, filepath.Join(home, "other.pub"), string(ssh.MarshalAuthorizedKey(public)))
	_, data = resolving(t, source)
	wantFiles(t, data, "a: 1")

	withSSH(t, strings.Replace(settings, "proxyjump none", "proxyjump bastion.example.test", 1))
	_, _, err = quick(t).Resolve(t.Context(), source)
	wantError[*Error](t, err, "through another host or a program (proxyjump)")
}

// ssh looks in the home folder of the account. If $HOME is another folder, files of both
// count. Files that ssh does not name never count.
func TestSSHHomes(t *testing.T) {
	h, home, source := sshSource(t)
	trust(t, h, filepath.Join(home, ".ssh", "known_hosts"), h.Key)
	write(t, filepath.Join(home, ".ssh", "id_ed25519"), remotetest.PEM(t, h.Client, ""))
	account, err := user.Current()
	must(t, err)
	for settings, want := range map[string]string{
		"userknownhostsfile " + account.HomeDir + "/.ssh/known_hosts\nidentityfile ~/.ssh/id_ed25519":  "",
		"userknownhostsfile " + account.HomeDir + "/.ssh/known_hosts\nidentityfile %d/.ssh/id_ed25519": "",
		"userknownhostsfile /nowhere\nidentityfile ~/.ssh/id_ed25519":                                  "no known_hosts of ssh",
		"userknownhostsfile none\nidentityfile ~/.ssh/id_ed25519":                                      "no known_hosts of ssh",
		"userknownhostsfile ~/.ssh/known_hosts\nidentityfile /nowhere":                                 "accepts no key",
	} {
		withSSH(t, "globalknownhostsfile none\n"+settings+"\n")
		_, _, err := quick(t).Resolve(t.Context(), source)
		if want != "" {
			wantError[*AuthError](t, err, want)
		} else if err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// ssh does not run for an account without a name, as in containers.
func TestSSHWithoutAccount(t *testing.T) {
	h, home, source := sshSource(t)
	trust(t, h, filepath.Join(home, ".ssh", "known_hosts"), h.Key)
	write(t, filepath.Join(home, ".ssh", "id_ed25519"), remotetest.PEM(t, h.Client, ""))
	withSSH(t, "")
	bin := os.Getenv("PATH")
	write(t, filepath.Join(bin, "ssh"), "#!/bin/sh\necho 'No user exists for uid 1234' >&2\nexit 255\n")
	must(t, os.Chmod(filepath.Join(bin, "ssh"), 0o700))
	_, data := resolving(t, source)
	wantFiles(t, data, "a: 1")
}

// A silent host takes all the allowed time.
func TestSSHHangs(t *testing.T) {
	isolate(t)
	withSSH(t, "")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	write(t, filepath.Join(os.Getenv("HOME"), ".ssh", "known_hosts"), "")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := listener.Accept(); err == nil {
			cancel()
		}
	}()
	_, _, err = quick(t).Resolve(ctx, dependency.Source{Kind: dependency.Git, URL: "ssh://git@" + listener.Addr().String() + "/a", Branch: "main"})
	wantError[*Error](t, err, "it was cancelled")
}

// Any number of goroutines use one Fetcher.
func TestConcurrent(t *testing.T) {
	charts, _ := chartHost(t, "1.2.0", "1.3.0")
	h, home, source := sshSource(t)
	withSSH(t, "")
	trust(t, h, filepath.Join(home, ".ssh", "known_hosts"), h.Key)
	write(t, filepath.Join(home, ".ssh", "id_ed25519"), remotetest.PEM(t, h.Client, ""))
	f := quick(t)
	var work sync.WaitGroup
	for range 3 {
		for _, s := range []dependency.Source{source, podinfo(charts.URL+"/charts", "1.2.0"), podinfo(charts.URL+"/charts", "1.x")} {
			work.Go(func() {
				e, _, err := f.Resolve(t.Context(), s)
				if err != nil {
					t.Error(err)
				}
				if _, err := f.Fetch(t.Context(), e); err != nil {
					t.Error(err)
				}
			})
		}
	}
	work.Wait()
}
