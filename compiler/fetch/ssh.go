package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// sshAuth logs in to a host as ssh would: with the keys of the agent and of files,
// and only if the host has the key that known_hosts has for it.
type sshAuth struct {
	user       string
	address    string // HOST:PORT
	agent      string // its socket; "" for none
	identities []string
	knownHosts []string

	encrypted []string // key files that nobody has a passphrase for
}

var _ gitssh.AuthMethod = (*sshAuth)(nil)

// sshSettings are what `ssh -G` says about a host: a line for each, the name in
// lower case and then the value (ssh(1)).
type sshSettings map[string][]string

func (s sshSettings) first(name string) string {
	if len(s[name]) == 0 || s[name][0] == "none" {
		return ""
	}
	return s[name][0]
}

// newSSHAuth finds out how the user logs in to the host of an endpoint, and puts
// into that where the host really is.
func newSSHAuth(ctx context.Context, e *transport.Endpoint) (*sshAuth, error) {
	s := readSSHSettings(ctx, e)
	for _, name := range []string{"proxyjump", "proxycommand"} {
		if s.first(name) != "" {
			return nil, fmt.Errorf("~/.ssh/config reaches %s through another host or a program (%s), which kalypso does not do; use an https URL, or lock where there is a direct way", e.Host, name)
		}
	}
	if name := s.first("hostname"); name != "" {
		e.Host = name
	}
	if port, err := strconv.Atoi(s.first("port")); err == nil {
		e.Port = port
	}
	if e.Port <= 0 {
		e.Port = gitssh.DefaultPort
	}
	a := &sshAuth{
		user:       e.User,
		address:    net.JoinHostPort(strings.Trim(e.Host, "[]"), strconv.Itoa(e.Port)),
		agent:      os.Getenv("SSH_AUTH_SOCK"),
		identities: s["identityfile"],
		knownHosts: append(strings.Fields(s.first("userknownhostsfile")), strings.Fields(s.first("globalknownhostsfile"))...),
	}
	if a.user == "" {
		a.user = gitssh.DefaultUsername
	}
	if socket := s.first("identityagent"); socket != "" && socket != "SSH_AUTH_SOCK" {
		a.agent = os.ExpandEnv(socket)
	}
	if len(s) == 0 {
		a.identities = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
		a.knownHosts = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts"}
	}
	return a, nil
}

// readSSHSettings asks ssh for what its configuration says about a host: nothing
// else reads all that it can say. Without ssh there is no configuration of it.
func readSSHSettings(ctx context.Context, e *transport.Endpoint) sshSettings {
	args := []string{"-G"}
	if e.Port > 0 {
		args = append(args, "-p", strconv.Itoa(e.Port))
	}
	if e.User != "" {
		args = append(args, "-l", e.User)
	}
	out, err := exec.CommandContext(ctx, "ssh", append(args, "--", strings.Trim(e.Host, "[]"))...).Output()
	if err != nil {
		return nil
	}
	s := sshSettings{}
	for line := range strings.Lines(string(out)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			s[name] = append(s[name], value)
		}
	}
	return s
}

// Name is what the method is called in errors.
func (a *sshAuth) Name() string { return "ssh-keys" }

// String is the method for people.
func (a *sshAuth) String() string { return a.user + " with the keys of ~/.ssh and the agent" }

// ClientConfig returns how to log in. Any number of connections may use it.
func (a *sshAuth) ClientConfig() (*ssh.ClientConfig, error) {
	known, err := gitssh.NewKnownHostsDb(existing(a.knownHosts)...)
	if err != nil {
		return nil, &unauthorized{"there is no known_hosts of ssh that can be read, so that no host can be told from another: " + err.Error(),
			"`ssh " + a.address + "`, run once, shows the key of the host and adds it"}
	}
	return &ssh.ClientConfig{
		User:              a.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(a.signers)},
		HostKeyCallback:   known.HostKeyCallback(),
		HostKeyAlgorithms: known.HostKeyAlgorithms(a.address),
		Timeout:           dialTimeout,
	}, nil
}

// signers are the keys of the agent and then those of files, as far as they need no
// passphrase.
func (a *sshAuth) signers() ([]ssh.Signer, error) {
	var out []ssh.Signer
	if a.agent != "" {
		if socket, err := net.Dial("unix", a.agent); err == nil {
			// The connection stays open for what is signed later, and ends with the process.
			keys, err := agent.NewClient(socket).Signers()
			if err == nil {
				out = keys
			}
		}
	}
	a.encrypted = nil
	for _, name := range existing(a.identities) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // ssh passes over what it cannot read, too
		}
		key, err := ssh.ParsePrivateKey(text)
		if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
			a.encrypted = append(a.encrypted, name)
		}
		if err == nil {
			out = append(out, key)
		}
	}
	return out, nil
}

// refused says that the host takes none of the keys.
func (a *sshAuth) refused(host string) error {
	hint := "`ssh -T " + a.user + "@" + host + "` shows what the host thinks of your keys"
	if len(a.encrypted) > 0 {
		hint = "these keys have a passphrase, which kalypso does not ask for; `ssh-add` gives them to the agent: " + strings.Join(a.encrypted, ", ")
	}
	return &unauthorized{fmt.Sprintf("%s accepts no key of ~/.ssh or the agent for the user %s", host, a.user), hint}
}

// existing are those of some files that are there, with ~ replaced by the home
// folder.
func existing(names []string) []string {
	var out []string
	home, _ := os.UserHomeDir()
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(home, rest)
		}
		if info, err := os.Stat(name); err == nil && info.Mode()&fs.ModeType == 0 {
			out = append(out, name)
		}
	}
	return out
}
