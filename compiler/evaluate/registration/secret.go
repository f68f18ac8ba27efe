package registration

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// foreignSecrets reports the secrets that values refer to and that their registration may
// not use. ref is where the values are.
func foreignSecrets(r *model.Registration, ref model.Ref, trees ...model.Tree) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, t := range trees {
		for _, secret := range secretsIn(t) {
			if r.Bounds != nil && r.Bounds.Secrets.Allow(secret) {
				continue
			}
			d := diag.New(diag.Bounds,
				fmt.Sprintf("%s refers to the secret %s, which registration %s may not use", ref, secret, r.Name)).
				Hinting("leave it out, or " + way(r, secret))
			ds = append(ds, d)
		}
	}
	return ds
}

// way says where a platform allows a registration a secret.
func way(r *model.Registration, secret string) string {
	const allow = "let the platform allow it: "
	switch {
	case r.Bounds == nil:
		return "correct workspace " + r.Workspace
	case r.Workspace == "":
		return allow + r.Bounds.AllowingSecret("NAME", r.Name, secret)
	}
	return allow + r.Bounds.AllowingSecret(r.Workspace, r.Name, secret)
}

// secretsIn returns the secrets that a tree refers to, as STORE/KEY.
func secretsIn(t model.Tree) []string {
	var out []string
	for _, f := range t.Fields {
		out = append(out, secretsIn(f.Tree)...)
	}
	if t.Open != nil && t.Open.Default != nil {
		out = append(out, secretsOfValue(*t.Open.Default)...)
	}
	return append(out, secretsOfValue(t.Final)...)
}

func secretsOfValue(v model.Value) []string {
	if v.Kind() == model.Secret {
		store, _ := v.Lookup("store")
		key, _ := v.Lookup("key")
		return []string{store.Text() + "/" + key.Text()}
	}
	var out []string
	for _, elem := range v.Elems() {
		out = append(out, secretsOfValue(elem)...)
	}
	for _, f := range v.Fields() {
		out = append(out, secretsOfValue(f.Value)...)
	}
	return out
}
