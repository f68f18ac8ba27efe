package remote

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// login is a user name and a password or token.
type login struct{ username, password string }

// effectiveURL returns the URL that git would use: url.<base>.insteadOf of its
// configuration replaces prefixes. Without git it is the URL itself. It may have a
// password, so git gets it in the environment as the URL of a remote.
func effectiveURL(ctx context.Context, url string) string {
	const name = "kalypso-asked"
	cmd := exec.CommandContext(ctx, "git", "ls-remote", "--get-url", name)
	cmd.Env = append(os.Environ(), configured("remote."+name+".url", url)...)
	out, err := cmd.Output()
	if text := strings.TrimSpace(string(out)); err == nil && text != "" && text != name {
		return text
	}
	return url
}

// configured is an environment that adds to git's configuration.
func configured(key, value string) []string {
	count, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT"))
	return []string{
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", count+1),
		fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", count, key),
		fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", count, value),
	}
}

// gitLogin uses git's credential helpers (gitcredentials(7)). They may not prompt on the
// terminal, because the user does not expect that.
func gitLogin(ctx context.Context, e *transport.Endpoint, username string) (login, bool) {
	question := fmt.Sprintf("protocol=%s\nhost=%s\npath=%s\n", e.Protocol, hostPort(e),
		strings.TrimPrefix(e.Path, "/"))
	if username != "" {
		question += "username=" + username + "\n"
	}
	cmd := exec.CommandContext(ctx, "git", "credential", "fill")
	cmd.Stdin = strings.NewReader(question + "\n")
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.Output()
	if err != nil {
		return login{}, false
	}
	l := login{username: username}
	for line := range strings.Lines(string(out)) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		switch name {
		case "username":
			l.username = value
		case "password":
			l.password = value
		}
	}
	return l, l.password != ""
}

// maxNetrc is the largest number of bytes to read of a .netrc.
const maxNetrc = 1 << 20

// readNetrc returns $NETRC, else ~/.netrc, or "".
func readNetrc() string {
	name := os.Getenv("NETRC")
	if name == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		name = filepath.Join(home, ".netrc")
		if _, err := os.Stat(name); err != nil && runtime.GOOS == "windows" {
			name = filepath.Join(home, "_netrc")
		}
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxNetrc {
		return ""
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(text)
}

// netrcLogin returns the login for a host in the user's .netrc.
func netrcLogin(host, username string) (login,
	bool) {
	return findNetrc(readNetrc(), host, username)
}

// netrcForAll reports whether the user's .netrc has a login for every host, which git would
// send to any.
func netrcForAll() bool {
	return slices.ContainsFunc(parseNetrc(readNetrc()),
		func(e netrcEntry) bool { return e.host == "" })
}

// findNetrc returns the first login for a host, and for a user unless it is "". The login
// for every host is not used: hosts are named by others.
func findNetrc(text, host, username string) (login, bool) {
	for _, e := range parseNetrc(text) {
		if e.host != "" && strings.EqualFold(e.host, host) && e.password != "" &&
			(username == "" || e.username == username) {
			return e.login, true
		}
	}
	return login{}, false
}

// netrcEntry is a login with its host; "" for all.
type netrcEntry struct {
	host string
	login
}

// parseNetrc returns the entries of a .netrc
// (https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html).
func parseNetrc(text string) []netrcEntry {
	var out []netrcEntry
	words := strings.Fields(withoutMacros(text))
	for i := 0; i < len(words); i++ {
		value, last := "", len(out)-1
		if i+1 < len(words) {
			value = words[i+1]
		}
		switch words[i] {
		case "machine":
			out = append(out, netrcEntry{host: value})
		case "default":
			out = append(out, netrcEntry{})
			continue
		case "login":
			if last >= 0 {
				out[last].username = value
			}
		case "password":
			if last >= 0 {
				out[last].password = value
			}
		case "account":
		default:
			continue // curl ignores unknown words, too
		}
		i++
	}
	return out
}

// withoutMacros removes macro definitions, which end at the next empty line, and comments.
func withoutMacros(text string) string {
	var out strings.Builder
	macro := false
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "macdef"):
			macro = true
		case trimmed == "":
			macro = false
		}
		if !macro && !strings.HasPrefix(trimmed, "#") {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}
