package kubetype

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// Encrypted reports whether SOPS has encrypted an object, with the same rules as Flux. It
// looks for metadata of SOPS with a MAC, or for a Secret with an encrypted file among its
// data, as a generator of Kustomize makes it
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#decryption).
func Encrypted(object model.Value) bool {
	metadata, _ := object.Lookup("sops")
	if text(metadata, "mac") != "" {
		return true
	}
	for data := range secretData(object) {
		if slices.ContainsFunc(fileMarks, func(mark []byte) bool { return bytes.Contains(data, mark) }) {
			return true
		}
	}
	return false
}

// fileMarks are parts of files of YAML, JSON, variables and INI that SOPS has encrypted, as the
// decryptor of Flux's kustomize-controller has them.
var fileMarks = [][]byte{[]byte("mac: ENC["), []byte(`"mac": "ENC[`), []byte("sops_mac=ENC["),
	[]byte("[sops]")}

// secretData yields the data of a Secret, decoded, with their names.
func secretData(object model.Value) func(yield func([]byte, string) bool) {
	return func(yield func([]byte, string) bool) {
		if text(object, "apiVersion") != "v1" || text(object, "kind") != "Secret" {
			return
		}
		data, _ := object.Lookup("data")
		for _, f := range data.Fields() {
			if decoded, err := base64.StdEncoding.DecodeString(f.Value.Text()); err == nil &&
				!yield(decoded, f.Name) {
				return
			}
		}
	}
}

// ciphertext is the prefix of values that SOPS has encrypted.
const ciphertext = "ENC[AES256_GCM,data:"

// Ciphertext returns the path of the first value that SOPS has encrypted, or "". If the
// object is not Encrypted, the metadata that are needed to decrypt the value are missing.
func Ciphertext(object model.Value) string {
	for data, name := range secretData(object) {
		if bytes.HasPrefix(data, []byte(ciphertext)) {
			return model.JoinPath("data", model.Label(name))
		}
	}
	return ciphertextIn(object, "")
}

func ciphertextIn(v model.Value, path string) string {
	if v.Kind() == model.String && strings.HasPrefix(v.Text(), ciphertext) {
		return path
	}
	for i, e := range v.Elems() {
		if found := ciphertextIn(e, fmt.Sprintf("%s[%d]", path, i)); found != "" {
			return found
		}
	}
	for _, f := range v.Fields() {
		if found := ciphertextIn(f.Value, model.JoinPath(path, model.Label(f.Name))); found != "" {
			return found
		}
	}
	return ""
}

// Encrypts reports whether the metadata of SOPS say that the value at a path of fields is
// encrypted. The rules are the same as in sops.Tree
// (https://pkg.go.dev/github.com/getsops/sops/v3), except that Encrypts ignores the rules
// about comments.
func Encrypts(object model.Value, path ...string) bool {
	metadata, _ := object.Lookup("sops")
	encrypted := true
	for _, rule := range []struct {
		field string
		to    bool
		is    func(rule, name string) bool
	}{
		{"unencrypted_suffix", false,
			func(suffix, name string) bool { return strings.HasSuffix(name, suffix) }},
		{"encrypted_suffix", true,
			func(suffix, name string) bool { return strings.HasSuffix(name, suffix) }},
		{"unencrypted_regex", false, matches},
		{"encrypted_regex", true, matches},
	} {
		of := text(metadata, rule.field)
		switch {
		case of == "":
		case slices.ContainsFunc(path, func(name string) bool { return rule.is(of, name) }):
			encrypted = rule.to
		case rule.to:
			encrypted = false
		}
	}
	return encrypted
}

func matches(expr, name string) bool {
	matched, err := regexp.MatchString(expr, name)
	return err == nil && matched
}
