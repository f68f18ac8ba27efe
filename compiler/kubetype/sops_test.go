package kubetype_test

import (
	"encoding/base64"
	"testing"

	"github.com/kalypso-io/kalypso/compiler/kubetype"
)

func TestEncrypted(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n"
	const text = "ENC[AES256_GCM,data:AAAA,iv:AAAA,tag:AAAA,type:str]"
	coded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct {
		name, manifest string
		encrypted      bool
		ciphertext     string
	}{
		{"plain", secret + "stringData: {a: b}\n", false, ""},
		{"encrypted", secret + "stringData: {a: '" + text + "'}\nsops: {mac: '" + text + "'}\n", true, "sops.mac"},
		{"field of another meaning", secret + "sops: {enabled: true}\n", false, ""},
		{"file of YAML among the data", secret + "data: {a.yaml: " + coded("x: y\nsops:\n    mac: ENC[AES256_GCM,data:x]\n") + "}\n", true, ""},
		{"file of variables among the data", secret + "data: {a.env: " + coded("X=y\nsops_mac=ENC[AES256_GCM,data:x]\n") + "}\n", true, ""},
		{"variables of an encrypted file", secret + "data: {PASSWORD: " + coded(text) + "}\n", false, "data.PASSWORD"},
		{"encrypted values", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: x, b: '" + text + "'}\n", false, "data.b"},
		{"text about it", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 'see " + text + "'}\n", false, ""},
	} {
		v := object(t, c.manifest)
		if got := kubetype.Encrypted(v); got != c.encrypted {
			t.Errorf("%s: Encrypted: %t", c.name, got)
		}
		if got := kubetype.Ciphertext(v); got != c.ciphertext {
			t.Errorf("%s: Ciphertext: %q", c.name, got)
		}
	}
}

// The rules are the same as in sops.Tree.
func TestEncrypts(t *testing.T) {
	for _, c := range []struct {
		rules string
		want  bool
	}{
		{"{}", true},
		{"{unencrypted_suffix: _unencrypted}", true},
		{"{unencrypted_suffix: labels}", false},
		{"{encrypted_suffix: Templates}", false},
		{"{encrypted_suffix: data}", true},
		{"{encrypted_regex: '^(data|stringData)$'}", false},
		{"{encrypted_regex: '^(data|labels)$'}", true},
		{"{encrypted_regex: data}", true},
		{"{unencrypted_regex: '^(apiVersion|metadata|kind|type)$'}", false},
		{"{unencrypted_regex: '^kind$'}", true},
	} {
		if got := kubetype.Encrypts(object(t, "sops: "+c.rules+"\n"), "metadata", "labels", "a"); got != c.want {
			t.Errorf("%s: %t", c.rules, got)
		}
	}
}
