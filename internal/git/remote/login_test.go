package remote

import (
	"strings"
	"testing"
)

func TestNetrc(t *testing.T) {
	const file = `# a comment: machine example.com login no password no
machine a.example.com login one password p1
machine b.example.com
	login two account x
	password p2 # not a comment in every reader, and ignored here
machine b.example.com login three password p3
macdef init
	machine c.example.com login macro password macro

machine	d.example.com password p4
default login anyone password p5
`
	for _, c := range []struct {
		host, user, want string
	}{
		{"a.example.com", "", "one p1"},
		{"A.example.com", "", "one p1"},
		{"a.example.com", "two", ""},
		{"b.example.com", "", "two p2"},
		{"b.example.com", "three", "three p3"},
		{"c.example.com", "", ""},
		{"d.example.com", "", " p4"},
		{"example.com", "anyone", ""},
	} {
		l, ok := findNetrc(file, c.host, c.user)
		got := ""
		if ok {
			got = l.username + " " + l.password
		}
		if got != c.want {
			t.Errorf("%s as %q: %q, want %q", c.host, c.user, got, c.want)
		}
	}
	if _, ok := findNetrc("machine a.example.com login x", "a.example.com", ""); ok {
		t.Error("a login without a password is one")
	}
}

// FuzzNetrc: a login is of the text, and of the requested user.
func FuzzNetrc(f *testing.F) {
	f.Add("machine a login b password c\nmacdef x\n\ndefault password", "a", "")
	f.Fuzz(func(t *testing.T, text, host, user string) {
		if l, ok := findNetrc(text, host, user); ok && (l.password == "" || !strings.Contains(text, l.password) || user != "" && l.username != user) {
			t.Errorf("%q", l)
		}
	})
}
