package registration

import "testing"

func TestLocalPlace(t *testing.T) {
	for address, want := range map[string]string{
		"file:///srv/git/team.git":           localFiles,
		"FILE:///etc":                        localFiles,
		"/srv/git/team":                      localFiles,
		"../team":                            localFiles,
		"http://localhost/team":              "localhost",
		"http://LOCALHOST.:8080/team":        "LOCALHOST.:8080",
		"https://git.localhost/team":         "git.localhost",
		"http://127.0.0.1:3000/team":         "127.0.0.1:3000",
		"http://127.1/team":                  "127.1",
		"http://0x7f000001/team":             "0x7f000001",
		"http://0177.0.0.01/team":            "0177.0.0.01",
		"http://2130706433/team":             "2130706433",
		"http://[::1]/team":                  "[::1]",
		"http://[::ffff:127.0.0.1]/team":     "[::ffff:127.0.0.1]",
		"http://[fe80::1%25eth0]/team":       "[fe80::1%eth0]",
		"http://169.254.169.254/latest":      "169.254.169.254",
		"oci://0.0.0.0:5000/team":            "0.0.0.0:5000",
		"git@localhost:team/app":             "localhost",
		"git@127.0.0.1:team/app":             "127.0.0.1",
		"git@[::1]:team/app":                 "[::1]",
		"ssh://git@127.0.0.1:22/team":        "127.0.0.1:22",
		"https://git.example.com/team":       "",
		"https://10.1.2.3/team":              "",
		"git@git.example.com:team/app":       "",
		"oci://registry.example.com:5000/a":  "",
		"https://localhost.example.com/team": "",
		"https://127.0.0.1.nip.example/team": "",
	} {
		if got := localPlace(address); got != want {
			t.Errorf("%s is on %q, want %q", address, got, want)
		}
	}
}
