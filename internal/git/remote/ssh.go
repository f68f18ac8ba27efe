package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kalypso-io/kalypso/internal/httpclient"
)

// sshAuth logs in to a host as ssh would. It uses the keys of the agent and of files. It only
// logs in if the host has the key in known_hosts.
type sshAuth struct {
	user       string
	address    string   // HOST:PORT
	agent      string   // its socket, or ""
	identities []string // files of keys
	only       bool     // only those of the agent's keys that identities has
	knownHosts []string
}

var _ gitssh.AuthMethod = (*sshAuth)(nil)

// sshSettings are the lines of `ssh -G` for a host: the name in lower case and then the
// value (ssh(1)).
type sshSettings map[string][]string

func (s sshSettings) first(name string) string {
	if len(s[name]) == 0 || s[name][0] == "none" {
		return ""
	}
	return s[name][0]
}

// newSSHAuth returns the user's login for the host of an endpoint, and sets the real host
// of the endpoint.
func newSSHAuth(ctx context.Context, e *transport.Endpoint) (*sshAuth, error) {
	if setting := sshCommand(ctx); setting != "" {
		return nil, &unsupportedError{reason: setting + " has git run a command of its own", host: e.Host}
	}
	s, err := readSSHSettings(ctx, e)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"proxyjump", "proxycommand"} {
		if s.first(name) != "" {
			return nil, &unsupportedError{reason: "~/.ssh/config goes through another host or a program (" +
				name + ")", host: e.Host}
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
		only:       s.first("identitiesonly") == "yes",
		knownHosts: append(paths(s.first("userknownhostsfile")),
			paths(s.first("globalknownhostsfile"))...),
	}
	if a.user == "" {
		a.user = cmp.Or(s.first("user"), gitssh.DefaultUsername)
	}
	if len(s["identityagent"]) > 0 && s["identityagent"][0] != "SSH_AUTH_SOCK" {
		a.agent = os.ExpandEnv(s.first("identityagent"))
	}
	if len(s) == 0 {
		a.identities = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}
		a.knownHosts = []string{"~/.ssh/known_hosts", "~/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts"}
	}
	return a, nil
}

// sshTo returns the ssh command for HOST:PORT.
func sshTo(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == strconv.Itoa(gitssh.DefaultPort) {
		return "ssh " + cmp.Or(host, address)
	}
	return "ssh -p " + port + " " + host
}

// unsupportedError is that the user's configuration reaches a host in a way that only git and
// ssh implement.
type unsupportedError struct{ reason, host string }

func (d *unsupportedError) Error() string {
	return fmt.Sprintf("%s to reach %s, which kalypso does not do; use an https URL, or lock where "+
		"there is a direct way", d.reason, d.host)
}

// sshCommand returns the setting of git's (git(1), git-config(1)) that replaces ssh, or
// "".
func sshCommand(ctx context.Context) string {
	for _, name := range []string{"GIT_SSH_COMMAND", "GIT_SSH"} {
		if os.Getenv(name) != "" {
			return name
		}
	}
	if out, err := exec.CommandContext(ctx, "git", "config", "--get",
		"core.sshCommand").Output(); err == nil && len(bytes.TrimSpace(out)) > 0 {
		return "core.sshCommand"
	}
	return ""
}

// readSSHSettings runs ssh to get its configuration for a host: no other reader supports
// all of it. Without ssh it is empty.
func readSSHSettings(ctx context.Context, e *transport.Endpoint) (sshSettings, error) {
	args := []string{"-G"}
	if e.Port > 0 {
		args = append(args, "-p", strconv.Itoa(e.Port))
	}
	if e.User != "" {
		args = append(args, "-l", e.User)
	}
	out, err := exec.CommandContext(ctx, "ssh",
		append(args, "--", strings.Trim(e.Host, "[]"))...).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, nil
	}
	if said := (*exec.ExitError)(nil); errors.As(err, &said) {
		if bytes.Contains(said.Stderr, []byte("No user exists for uid")) {
			return nil, nil // containers have accounts without a name, for which ssh does not run
		}
		return nil, fmt.Errorf("ssh cannot read its configuration: %s", said.Stderr)
	}
	if err != nil {
		return nil, err
	}
	s := sshSettings{}
	for line := range strings.Lines(string(out)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			s[name] = append(s[name], value)
		}
	}
	return s, nil
}

// Name is the name of the method in errors.
func (a *sshAuth) Name() string { return "ssh-keys" }

// String is the method for people.
func (a *sshAuth) String() string { return a.user + " with the keys of ~/.ssh and the agent" }

// ClientConfig returns the configuration of connections. Any number of them may use it.
func (a *sshAuth) ClientConfig() (*ssh.ClientConfig, error) {
	files := existing(a.knownHosts)
	unknown := &AuthError{Problem: "there is no known_hosts of ssh that can be read, so that no " +
		"host can be told from another",
		Hint: "`" + sshTo(a.address) + "`, run once, shows the key of the host and adds it"}
	if len(files) == 0 {
		return nil, unknown // go-git would look for files that ssh does not
	}
	known, err := gitssh.NewKnownHostsDb(files...)
	if err != nil {
		unknown.Problem += ": " + err.Error()
		return nil, unknown
	}
	return &ssh.ClientConfig{
		User:              a.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeysCallback(a.signers)},
		HostKeyCallback:   known.HostKeyCallback(),
		HostKeyAlgorithms: known.HostKeyAlgorithms(a.address),
		Timeout:           httpclient.DialTimeout,
	}, nil
}

// signers returns the keys of the agent and then the keys of files.
func (a *sshAuth) signers() ([]ssh.Signer, error) {
	keys, _ := a.fileSigners()
	return append(a.agentSigners(), keys...), nil
}

// fileSigners returns the keys of files, and the files whose key needs a passphrase.
// Unreadable files are ignored, as ssh does.
func (a *sshAuth) fileSigners() (keys []ssh.Signer, encrypted []string) {
	for _, name := range existing(a.identities) {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		key, err := ssh.ParsePrivateKey(text)
		if locked := (*ssh.PassphraseMissingError)(nil); errors.As(err, &locked) {
			encrypted = append(encrypted, name)
		}
		if err == nil {
			keys = append(keys, key)
		}
	}
	return keys, encrypted
}

// agentSigners returns the keys of the agent that may be used for the host.
func (a *sshAuth) agentSigners() []ssh.Signer {
	if a.agent == "" {
		return nil
	}
	socket, err := net.Dial("unix", a.agent)
	if err != nil {
		return nil
	}
	// The connection stays open for later signatures, and ends with the process.
	keys, err := agent.NewClient(socket).Signers()
	if err != nil {
		return nil
	}
	if !a.only {
		return keys
	}
	return slices.DeleteFunc(keys, func(key ssh.Signer) bool { return !a.identifies(key.PublicKey()) })
}

// identifies reports whether one of the files belongs to a key. The public key is next to the
// private one, or it is alone if the agent has the private one.
func (a *sshAuth) identifies(key ssh.PublicKey) bool {
	for _, name := range a.identities {
		for _, public := range existing([]string{name + ".pub", name}) {
			text, err := os.ReadFile(public)
			if err != nil {
				continue
			}
			if known, _, _, _,
				err := ssh.ParseAuthorizedKey(text); err == nil && bytes.Equal(known.Marshal(), key.Marshal()) {
				return true
			}
		}
	}
	return false
}

// refused returns the error for a host that does not accept any of the keys.
func (a *sshAuth) refused(host string) error {
	hint := "`ssh -T " + a.user + "@" + host + "` shows what the host thinks of your keys"
	if _, encrypted := a.fileSigners(); len(encrypted) > 0 {
		hint = "these keys have a passphrase, which kalypso does not ask for; `ssh-add` gives them to " +
			"the agent: " + strings.Join(encrypted, ", ")
	}
	return &AuthError{Problem: fmt.Sprintf("%s accepts no key of ~/.ssh or the agent for the user %s",
		host, a.user), Hint: hint}
}

// paths returns the files of a setting. ssh separates them by spaces and does not quote spaces in
// names, so the next path begins with / or ~.
func paths(setting string) []string {
	var out []string
	for _, field := range strings.Fields(setting) {
		if begins := filepath.IsAbs(field) || strings.HasPrefix(field, "~"); !begins && len(out) > 0 {
			out[len(out)-1] += " " + field
		} else {
			out = append(out, field)
		}
	}
	return out
}

// existing returns the given files that exist. ssh expands ~ to the home folder of the
// account, whatever $HOME is (ssh(1), FILES). In containers and CI these are often two
// folders, and users write to the one that they see: a file counts in both.
func existing(names []string) []string {
	account, home := homes()
	var out []string
	for _, name := range names {
		places := []string{name}
		for _, prefix := range []string{"~", "%d", account} {
			if rest, ok := strings.CutPrefix(filepath.ToSlash(name), filepath.ToSlash(prefix)+"/"); ok &&
				prefix != "" {
				places = []string{filepath.Join(account, rest), filepath.Join(home, rest)}
			}
		}
		for _, place := range slices.Compact(places) {
			if info, err := os.Stat(place); err == nil && info.Mode()&fs.ModeType == 0 {
				out = append(out, place)
			}
		}
	}
	return out
}

// homes returns the home folder of the account and the home folder of the environment. They are
// equal if only one is known.
func homes() (account, environment string) {
	if u, err := user.Current(); err == nil {
		account = u.HomeDir
	}
	environment, _ = os.UserHomeDir()
	return cmp.Or(account, environment), cmp.Or(environment, account)
}
