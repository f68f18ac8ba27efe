package detect_test

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/promotion/forge/detect"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, pair := range pairs {
			if value, ok := strings.CutPrefix(pair, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestDetect(t *testing.T) {
	const ghes, lab = "GITHUB_SERVER_URL=https://ghes.example.com", "CI_SERVER_URL=https://git.example.com:8443/gitlab"
	for _, test := range []struct {
		remote   string
		env      []string
		override string
		want     string // kind base path
	}{
		// Well-known hosts, in all forms that git has.
		{"https://github.com/acme/gitops.git", nil, "", "github https://github.com acme/gitops"},
		{"https://github.com/acme/gitops/", nil, "", "github https://github.com acme/gitops"},
		{"https://GitHub.com:443/acme/gitops", nil, "", "github https://github.com acme/gitops"},
		{"https://user:secret@github.com/acme/gitops", nil, "", "github https://github.com acme/gitops"},
		{"git@github.com:acme/gitops.git", nil, "", "github https://github.com acme/gitops"},
		{"github.com:acme/gitops", nil, "", "github https://github.com acme/gitops"},
		{"ssh://git@ssh.github.com:443/acme/gitops.git", nil, "", "github https://github.com acme/gitops"},
		{"git://github.com/acme/gitops", nil, "", "github https://github.com acme/gitops"},
		{"git@github.com:/acme/gitops.git", nil, "", "github https://github.com acme/gitops"},
		{"git@acme.ghe.com:acme/gitops", nil, "", "github https://acme.ghe.com acme/gitops"},
		{"https://gitlab.com/acme/platform/gitops.git", nil, "", "gitlab https://gitlab.com acme/platform/gitops"},
		{"git@altssh.gitlab.com:acme/a/b/gitops.git", nil, "", "gitlab https://gitlab.com acme/a/b/gitops"},
		{"ssh://git@codeberg.org/acme/gitops.git", nil, "", "gitea https://codeberg.org acme/gitops"},
		{"https://gitea.com/acme/git.ops", nil, "", "gitea https://gitea.com acme/git.ops"},
		// The environment.
		{"https://ghes.example.com/acme/gitops", nil, "", "none  "},
		{"https://ghes.example.com/acme/gitops", []string{ghes}, "", "github https://ghes.example.com acme/gitops"},
		{"ssh://git@ghes.example.com:2222/acme/gitops", []string{ghes}, "", "github https://ghes.example.com acme/gitops"},
		{"git@ghes.example.com:acme/gitops", []string{"GITHUB_API_URL=https://ghes.example.com/api/v3"}, "", "github https://ghes.example.com acme/gitops"},
		{"git@ghes.example.com:acme/gitops", []string{"GH_HOST=ghes.example.com"}, "", "github https://ghes.example.com acme/gitops"},
		{"git@ghes.example.com:acme/gitops", []string{ghes, "GITEA_ACTIONS=true"}, "", "gitea https://ghes.example.com acme/gitops"},
		{"git@ghes.example.com:acme/gitops", []string{ghes, "FORGEJO_ACTIONS=true"}, "", "gitea https://ghes.example.com acme/gitops"},
		{"git@other.example.com:acme/gitops", []string{ghes}, "", "none  "},
		{"https://git.example.com:8443/gitlab/acme/a/gitops.git", []string{lab}, "", "gitlab https://git.example.com:8443/gitlab acme/a/gitops"},
		{"ssh://git@git.example.com:22/acme/a/gitops.git", []string{lab}, "", "gitlab https://git.example.com:8443/gitlab acme/a/gitops"},
		{"https://git.example.com/acme/gitops", []string{lab}, "", "none  "},
		{"https://git.example.com:8443/gitlabs/acme/gitops", []string{lab}, "", "none  "},
		{"http://127.0.0.1:3000/acme/gitops", []string{"GITHUB_SERVER_URL=http://127.0.0.1:3000", "GITEA_ACTIONS=true"}, "", "gitea http://127.0.0.1:3000 acme/gitops"},
		{"git@git.example.com:acme/gitops", []string{"GITLAB_HOST=git.example.com"}, "", "gitlab https://git.example.com acme/gitops"},
		{"https://github.com/acme/gitops", []string{"CI_SERVER_URL=https://github.com"}, "", "github https://github.com acme/gitops"},
		// The kind that the user chose.
		{"https://git.example.com/acme/gitops", nil, "gitlab", "gitlab https://git.example.com acme/gitops"},
		{"ssh://git@[2001:db8::1]:2222/acme/gitops", nil, "gitea", "gitea https://[2001:db8::1] acme/gitops"},
		{"git@[2001:db8::1]:acme/gitops", nil, "", "none  "},
		{"http://localhost:8080/acme/gitops", nil, "gitea", "gitea http://localhost:8080 acme/gitops"},
		{"git@git.example.com:acme/gitops", []string{lab}, "gitlab", "gitlab https://git.example.com:8443/gitlab acme/gitops"},
		{"https://github.com/acme/gitops", nil, "none", "none  "},
		// Folders, and URLs for other programs.
		{"/srv/git/gitops.git", nil, "", "none  "},
		{"./a:b/c", nil, "", "none  "},
		{"file:///srv/github.com/acme/gitops", nil, "", "none  "},
		{`C:\repos\gitops`, nil, "", "none  "},
		{"C:/repos/gitops", nil, "", "none  "},
		{"gitops.bundle", nil, "", "none  "},
		{"", nil, "", "none  "},
		{"ext::sh -c github.com:acme/gitops", nil, "", "none  "},
		{"s3://github.com/acme/gitops", nil, "", "none  "},
		// Hosts that look like others.
		{"https://github.com@evil.example.com/acme/gitops", nil, "", "none  "},
		{"https://github.com.evil.example.com/acme/gitops", nil, "", "none  "},
		{"https://evil.example.com/github.com/acme/gitops", nil, "", "none  "},
		{"https://evilgithub.com/acme/gitops", nil, "", "none  "},
		{"https://evilghe.com/acme/gitops", nil, "", "none  "},
	} {
		kind, base, path, err := detect.Detect(test.remote, env(test.env...), test.override)
		if got := kind + " " + base + " " + path; got != test.want || err != nil {
			t.Errorf("%s %v %s:\n got %s, %v\nwant %s", test.remote, test.env, test.override, got, err, test.want)
		}
	}
}

func TestHostile(t *testing.T) {
	for _, test := range []struct{ remote, override string }{
		{"https://github.com/acme", ""},
		{"https://github.com/", ""},
		{"https://github.com/acme/../../admin", ""},
		{"https://github.com/acme/..", ""},
		{"https://github.com/acme/%2e%2e", ""},
		{"https://github.com/acme/a%2fb", ""},
		{"https://github.com/acme/a b", ""},
		{"https://github.com/acme/gitops/tree", ""},
		{"https://github.com/acme/gitops?secret", ""},
		{"https://github.com/acme/gitops#secret", ""},
		{"https://github.com/acme//gitops", ""},
		{"https://user:secret@github.com\\@evil.example.com/acme/gitops", ""},
		{"https://user:secret@github.com:99999x/acme/gitops", ""},
		{"https://secret\x1b[31m@github.com/acme/gitops", ""},
		{"https:///acme/gitops", ""},
		{"https://:secret@/acme/gitops", "gitlab"},
		{"-oProxyCommand=secret:acme/gitops", ""},
		{"ssh://-oProxyCommand=secret/acme/gitops", ""},
		{"git@gіthub.com:acme/gitops", ""}, // a Cyrillic letter
		{"git@github.com:~secret/gitops", ""},
		{"git@github.com:acme/git\nops", ""},
		{"/srv/git/gitops.git", "gitlab"},
		{"https://github.com/acme/gitops", "sourcehut\x1b"},
	} {
		kind, base, path, err := detect.Detect(test.remote, env(), test.override)
		if err == nil {
			t.Errorf("%q: %s %s %s", test.remote, kind, base, path)
			continue
		}
		if strings.Contains(err.Error(), "user:secret") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q: %v", test.remote, err)
		}
	}
}

// FuzzDetect: the address of a forge has no credentials, and a path that leads nowhere else.
func FuzzDetect(f *testing.F) {
	f.Add("https://github.com/acme/gitops.git", "")
	f.Add("git@gitlab.com:a/b/c.git", "gitlab")
	f.Add("[::1]:a/b", "gitea")
	f.Fuzz(func(t *testing.T, remote, override string) {
		kind, base, path, err := detect.Detect(remote, env("CI_SERVER_URL=https://git.example.com/x"), override)
		if err == nil && kind != detect.None && (!strings.HasPrefix(base, "http") || strings.Contains(path, "..") && strings.Contains(path, "/../") || strings.Contains(base, "@")) {
			t.Errorf("%q: %s %s %s", remote, kind, base, path)
		}
	})
}
