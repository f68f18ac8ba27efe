package credential

import (
	"strings"
	"testing"
)

func TestIn(t *testing.T) {
	const (
		password = "the password before the host"
		user     = "the user name before the host"
		fragment = "the fragment"
	)
	for address, want := range map[string]string{
		"https://git.example.com/a":                        "",
		"https://git.example.com:8443/a@v1":                "",
		"git@git.example.com:team/app":                     "",
		"ssh://git@git.example.com/app":                    "",
		"file:///srv/git/app@1":                            "",
		"https://example.com/raw?at=main&inline=false":     "",
		"oci://registry.example.com/charts/app":            "",
		"https://TOKEN@git.example.com/a":                  user,
		"https://user:pass@git.example.com/a":              password,
		"https://user%3Apass@git.example.com/a":            password,
		"https://%75ser@git.example.com/a":                 user,
		"https://:pass@git.example.com/a":                  password,
		"https://@git.example.com/a":                       user,
		"https://user:p@ss@git.example.com/a":              password,
		"https://user:pa/ss@git.example.com/a":             password,
		"HTTPS://TOKEN@git.example.com":                    user,
		"oci://TOKEN@registry.example.com/charts/app":      user,
		"git://TOKEN@git.example.com/a":                    user,
		"ssh://git:pass@git.example.com/app":               password,
		"ssh://git%3Apass@git.example.com/app":             password,
		"git:pass@git.example.com:team/app":                password,
		"https://example.com/a?access_token=x":             "the query parameter access_token",
		"https://example.com/a?x=1&private_token=x":        "the query parameter private_token",
		"https://example.com/a?token=x":                    "the query parameter token",
		"https://example.com/a?%74oken=x":                  "the query parameter %74oken",
		"https://example.com/a?X-Amz-Signature=x":          "the query parameter X-Amz-Signature",
		"https://example.com/a?sv=1&sig=x":                 "the query parameter sig",
		"https://example.com/a?a=1;api_key=x":              "the query parameter api_key",
		"https://example.com/a#access_token=x":             fragment,
		"https://example.com/a#x":                          fragment,
		"https://example.com/design?pattern=1&monkey=pets": "",
	} {
		if got := In(address); got != want {
			t.Errorf("In(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestHide(t *testing.T) {
	for text, want := range map[string]string{
		`no "https://s3cret@git.example.com/a"`:                   `no "https://git.example.com/a"`,
		`https://user:s3cret@h/a and http://u:s3cret@i/b`:         `https://h/a and http://i/b`,
		`https://user:p@s3cret@h/a`:                               `https://h/a`,
		`https://user:pa/s3cret@h/a`:                              `https://h/a`,
		`https://user:pa?s3cret@h/a`:                              `https://h/a`,
		`https://user%3As3cret@h/a`:                               `https://h/a`,
		`ssh://git@h/a and git@h:a, https://h:8443/a@v1`:          `ssh://git@h/a and git@h:a, https://h:8443/a@v1`,
		`ssh://git:s3cret@h/a`:                                    `ssh://h/a`,
		`ssh://git%3As3cret@h/a`:                                  `ssh://h/a`,
		`"https://h/a?x=1&access_token=s3cret&y=2" x`:             `"https://h/a?x=1&access_token=***&y=2" x`,
		`https://h/a?%74oken=s3cret`:                              `https://h/a?%74oken=***`,
		`https://h/a#token=s3cret`:                                `https://h/a#token=***`,
		`two values "mysql://west:8806" and "mysql://u:s3cret@e"`: `two values "mysql://west:8806" and "mysql://e"`,
		`an image registry:5000/app:1.2@sha256:0123`:              `an image registry:5000/app:1.2@sha256:0123`,
		`--flag=x a ==> b`:                                        `--flag=x a ==> b`,
	} {
		if got := Hide(text); got != want {
			t.Errorf("Hide(%q) = %q, want %q", text, got, want)
		}
	}
}

// Hide hides everything that In finds.
func FuzzHide(f *testing.F) {
	for _, seed := range []string{"user:pa/ss", "TOKEN", "a%3Ab", "u:p@q", ":", "u:1/2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, user string) {
		const secret = "s3cr3tT0ken"
		if strings.ContainsAny(user, " \t\n\r\v\f\"'`?#/@\u0085\u00a0") {
			return // no user name
		}
		address := "https://" + user + secret + "@git.example.com/a"
		if In(address) == "" {
			t.Errorf("In(%q) finds nothing", address)
		}
		if hidden := Hide("cannot be \"" + address + "\""); strings.Contains(hidden, secret) {
			t.Errorf("%q shows the credential", hidden)
		}
	})
}
