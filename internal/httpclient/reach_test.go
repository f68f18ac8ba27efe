package httpclient

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/internal/address"
	"github.com/kalypso-io/kalypso/internal/testing/dnstest"
)

var loopback = map[string]netip.Addr{"a.example.": netip.MustParseAddr("127.0.0.1"), "b.example.": netip.MustParseAddr("127.0.0.1")}

// server returns a server that redirects /to?URL, and the requests to it, which are set
// again by each.
func server(t *testing.T) (port string, asked *http.Header) {
	t.Helper()
	asked = &http.Header{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Header
		if r.URL.Path == "/to" {
			to, _ := url.QueryUnescape(r.URL.RawQuery)
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL[strings.LastIndexByte(s.URL, ':'):], asked
}

func get(client *http.Client, from string) error {
	response, err := client.Get(from)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// The client checks the address of the connection, whatever leads there.
func TestReach(t *testing.T) {
	dnstest.Serve(t, loopback)
	port, asked := server(t)
	other, askedOther := server(t)
	to := func(place string) string { return "http://a.example" + port + "/to?" + url.QueryEscape(place) }
	but := address.Reach{Remote: true, But: "a.example" + port}
	for _, test := range []struct {
		name  string
		reach address.Reach
		from  string
		local bool
	}{
		{"no bounds", address.Reach{}, "http://127.0.0.1" + port, false},
		{"an address", address.Reach{Remote: true}, "http://127.0.0.1" + port, true},
		{"IPv6", address.Reach{Remote: true}, "http://[::ffff:7f00:1]" + port, true},
		{"a name", address.Reach{Remote: true}, "http://a.example" + port, true},
		{"the one", but, "http://A.example" + port, false},
		{"the one, redirected", but, to("http://a.example" + port + "/x"), false},
		{"another port", but, to("http://a.example" + other), true},
		{"another name", but, to("http://b.example" + port), true},
		{"its address", but, to("http://127.0.0.1" + port), true},
		{"a service of clouds", but, to("http://169.254.169.254/latest/meta-data/"), true},
		{"unspecified", but, to("http://0.0.0.0" + other), true},
		{"a number", but, to("http://2130706433" + other), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			*askedOther, *asked = nil, nil
			client := &http.Client{Transport: Transport(Options{Reach: test.reach}), CheckRedirect: Redirect}
			err := get(client, test.from)
			if local := (*address.LocalError)(nil); errors.As(err, &local) != test.local || err != nil && !test.local {
				t.Error(err)
			}
			if test.local && *askedOther != nil {
				t.Error("the other was asked")
			}
			if test.reach == (address.Reach{Remote: true}) && *asked != nil {
				t.Error("it was asked")
			}
		})
	}
}

// A proxy may be on this machine, and resolves names itself. The client does not request names of
// this machine from it.
func TestReachByProxy(t *testing.T) {
	port, asked := server(t)
	t.Setenv("HTTP_PROXY", "http://127.0.0.1"+port)
	t.Setenv("NO_PROXY", "direct.example")
	client := &http.Client{Transport: Transport(Options{Reach: address.Reach{Remote: true}})}
	if err := get(client, "http://somewhere.example/"); err != nil || *asked == nil {
		t.Error(err)
	}
	*asked = nil
	dnstest.Serve(t, map[string]netip.Addr{"direct.example.": netip.MustParseAddr("127.0.0.1")})
	for _, from := range []string{"http://169.254.169.254/", "http://0.0.0.0/", "http://127.1" + port, "http://127.0.0.1" + port, "http://direct.example" + port} {
		if err := get(client, from); !errors.As(err, new(*address.LocalError)) || *asked != nil {
			t.Errorf("%s: %v", from, err)
		}
	}
}

// Credentials are for one server: its scheme, its name and its port.
func TestRedirect(t *testing.T) {
	dnstest.Serve(t, map[string]netip.Addr{"a.example.": loopback["a.example."], "sub.a.example.": loopback["a.example."]})
	port, asked := server(t)
	other, askedOther := server(t)
	client := &http.Client{Transport: Transport(Options{}), CheckRedirect: Redirect}
	for _, test := range []struct {
		to   string
		of   *http.Header
		want string
	}{
		{"http://a.example" + port, asked, "Bearer secret"},
		{"http://a.example" + other, askedOther, ""},
		{"http://sub.a.example" + other, askedOther, ""},
		{"http://sub.a.example" + port, asked, ""},
		{"http://127.0.0.1" + port, asked, ""},
		// Away, and back to the server that they are for.
		{"http://127.0.0.1" + other + "/to?" + url.QueryEscape("http://a.example"+port), asked, ""},
	} {
		request, err := http.NewRequest(http.MethodGet, "http://a.example"+port+"/to?"+url.QueryEscape(test.to), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer secret")
		response, err := client.Do(request)
		if err != nil {
			t.Errorf("%s: %v", test.to, err)
			continue
		}
		_ = response.Body.Close()
		if got := test.of.Get("Authorization"); got != test.want {
			t.Errorf("%s gets %q, want %q", test.to, got, test.want)
		}
	}
	for from, to := range map[string]string{"https://a.example/": "http://a.example/", "http://a.example/": "file:///etc/passwd"} {
		via, _ := http.NewRequest(http.MethodGet, from, nil)
		next, _ := http.NewRequest(http.MethodGet, to, nil)
		if Redirect(next, []*http.Request{via}) == nil {
			t.Errorf("%s may redirect to %s", from, to)
		}
	}
}
