package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeRefuses holds what is said where the hub cannot begin: what is wrong, and what to do.
func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	platform, plain := filepath.Join(dir, "platform"), filepath.Join(dir, "plain")
	if err := os.Mkdir(plain, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", platform).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := file("text.db", "this is no database")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	database := filepath.Join(dir, "hub.db")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no repository":     {[]string{"--local"}, []string{"--repo is missing", "a URL or a folder"}},
		"no such folder":    {[]string{"--local", "--repo", "./nowhere"}, []string{"--repo ./nowhere: there is no such folder"}},
		"no git":            {[]string{"--local", "--repo", plain}, []string{"is no git repository", "--path"}},
		"an address":        {[]string{"--local", "--repo", platform, "--listen", "8080"}, []string{"--listen 8080: ", "127.0.0.1:8080"}},
		"an open address":   {[]string{"--local", "--repo", platform, "--listen", ":8080"}, []string{"lets everybody in", "127.0.0.1"}},
		"no TLS":            {[]string{"--repo", platform, "--listen", ":8080"}, []string{"unencrypted", "--tls-cert"}},
		"no certificate":    {[]string{"--repo", platform, "--listen", ":8443", "--tls-cert", "nowhere.crt", "--tls-key", "nowhere.key"}, []string{"--tls-cert and --tls-key: ", "nowhere.crt"}},
		"a port in use":     {[]string{"--local", "--repo", platform, "--database", database, "--listen", listener.Addr().String()}, []string{listener.Addr().String(), "in use", "--listen names another address"}},
		"no database":       {[]string{"--local", "--repo", platform, "--database", text}, []string{"not a database", "the file is " + text, "--database or KALYPSO_HUB_DATABASE names another one"}},
		"a folder":          {[]string{"--local", "--repo", platform, "--database", plain}, []string{"is a directory", "names another one"}},
		"not to be written": {[]string{"--local", "--repo", platform, "--database", filepath.Join(text, "hub.db")}, []string{"the database: ", "names another one"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := root()
			cmd.SetArgs(append([]string{"serve"}, c.args...))
			cmd.SetOut(&bytes.Buffer{})
			err := cmd.ExecuteContext(ctx)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, and not %q", err, want)
				}
			}
		})
	}
}
