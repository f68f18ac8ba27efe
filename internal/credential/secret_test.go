package credential

import "testing"

func TestNamed(t *testing.T) {
	for name, want := range map[string]bool{
		"DB_PASSWORD": true, "dbPassword": true, "PRIVATE_KEY": true, "privateKey": true, "apikey": true, "API_KEY": true,
		"AWS_SECRET_ACCESS_KEY": true, "STORAGE_ACCESS_KEY_1": true, "token": true, "passphrase": true,
		"KEY": false, "KEYBOARD": false, "SORT_KEY": false, "monkey": false, "passenger": false, "tokens": false, "REGION": false, "": false,
	} {
		if Named(name) != want {
			t.Errorf("%s: %t", name, !want)
		}
	}
}

func TestLooks(t *testing.T) {
	for text, want := range map[string]bool{
		"-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----":         true,
		"-----BEGIN CERTIFICATE-----\nMIIBqTCCAU+gAwIBAgIU\n-----END CERTIFICATE-----": false,
		"postgres://user:hunter2@db.example.com/shop":                                  true,
		"u://a:b@c":                                                                           true,
		"postgres://db.example.com:5432/shop":                                                 false,
		"https://user@example.com/path":                                                       false,
		"ghp_" + "0123456789abcdefghijABCDEFGHIJ012345":                                       true,
		"AKIA" + "IOSFODNN7EXAMPLE":                                                           true,
		"wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzKq81vT2":                                             true,
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08":             false,
		"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08":                    false,
		"123e4567-e89b-12d3-a456-426614174000":                                                false,
		"registry.example.com/team/app:1.2.3@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b": false,
		"ApplicationConfigurationVersion2":                                                    false,
		"/var/lib/Application/data/Files01":                                                   false,
		"the quick brown fox jumps over the lazy dog":                                         false,
		"": false,
	} {
		if Looks(text) != want {
			t.Errorf("%s: %t", text, !want)
		}
	}
}
