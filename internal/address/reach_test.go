package address

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

func TestIsLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST.": true, "git.localhost": true,
		"127.0.0.1": true, "127.1": true, "0x7f000001": true, "0177.0.0.01": true, "2130706433": true,
		"[::1]": true, "::1": true, "[::ffff:127.0.0.1]": true, "[fe80::1%eth0]": true, "0.0.0.0": true, "[::]": true,
		"169.254.169.254": true, "[fd00:ec2::254]": true, "100.100.100.200": true,
		"git.example.com": false, "10.1.2.3": false, "[fd00:ec2::253]": false, "100.100.100.201": false,
		"localhost.example.com": false, "127.0.0.1.nip.example": false, "": false,
	} {
		if got := IsLocal(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestReach(t *testing.T) {
	loopback, other := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.1")
	for _, test := range []struct {
		reach  Reach
		server string
		ip     netip.Addr
		want   bool
	}{
		{Reach{}, "a.example:80", loopback, true},
		{Reach{Remote: true}, "a.example:80", other, true},
		{Reach{Remote: true}, "a.example:80", loopback, false},
		{Reach{Remote: true}, "a.example:80", netip.MustParseAddr("::ffff:169.254.169.254"), false},
		{Reach{Remote: true, But: "a.example:80"}, "A.example:80", loopback, true},
		{Reach{Remote: true, But: "a.example:80"}, "a.example:81", loopback, false},
	} {
		if err := test.reach.Check(test.server, test.ip); (err == nil) != test.want {
			t.Errorf("%+v, %s at %s: %v", test.reach, test.server, test.ip, err)
		}
	}
	for _, test := range []struct {
		but, server string
		want        bool
	}{
		{"", "127.0.0.1:80", false}, {"", "[::1]:80", false}, {"", "localhost:80", false}, {"", "a.example:80", true}, {"", "a.example", true},
		{"127.0.0.1:80", "127.0.0.1:80", true}, {"127.0.0.1:80", "127.0.0.1:443", false},
	} {
		if err := (Reach{Remote: true, But: test.but}).CheckName(test.server); (err == nil) != test.want {
			t.Errorf("%s but %s: %v", test.server, test.but, err)
		}
	}
}

// FuzzParse checks that an address of this machine is recognized if HTTP would connect to it,
// however the URL is written.
func FuzzParse(f *testing.F) {
	for _, url := range []string{
		"https://git.example.com/billing/app", "git@git.example.com:billing/app", "oci://[::1]:5000/a", "http://127.1/a/%2e%2e/b",
		"http://[fe80::1%25eth0]/x", "http://user:pass@LOCALHOST.:80/", "file:///etc", "http://2130706433", "ssh://-x@a:99999/b",
	} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		a, ok := Parse(url)
		for _, part := range a.Path {
			if part == "" || part == "." || part == ".." || strings.ContainsAny(part, `/\`) {
				t.Errorf("%q has %q in its path", url, part)
			}
		}
		request, err := http.NewRequest(http.MethodGet, url, nil)
		if err != nil || request.URL.Scheme != "http" && request.URL.Scheme != "https" {
			return
		}
		ip, err := netip.ParseAddr(request.URL.Hostname())
		if err == nil && isLocal(ip) && (!ok || !IsLocal(a.Host)) {
			t.Errorf("%q is at %s", url, a.Host)
		}
		if err == nil && isLocal(ip) && (Reach{Remote: true}).CheckName(a.Server()) == nil {
			t.Errorf("%q is within reach as %s", url, a.Server())
		}
	})
}
