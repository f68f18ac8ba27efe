package registration

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// secretsOf returns which secrets the workspace of a registration may use.
func secretsOf(env *model.Environment, r *model.Registration) model.Patterns {
	of, _ := env.WorkspaceOf(&model.Workload{Workspace: r.Workspace, Registration: r.Name})
	if of == nil {
		return nil
	}
	return of.Secrets
}

// foreignSecrets reports the secrets that values refer to and that their registration may
// not use. ref is where the values are.
func foreignSecrets(r *model.Registration, ref model.Ref, trees ...model.Tree) []diag.Diagnostic {
	var ds []diag.Diagnostic
	for _, t := range trees {
		for _, secret := range secretsIn(t) {
			if r.Secrets.Allow(secret) {
				continue
			}
			d := diag.New(diag.Bounds, fmt.Sprintf("%s refers to the secret %s, which registration %s may not use", ref, secret, r.Name)).
				Hinting("leave it out, or let the platform allow it: workspaces: " + way(r, secret))
			ds = append(ds, d)
		}
	}
	return ds
}

// way says where a platform allows a registration a secret.
func way(r *model.Registration, secret string) string {
	if r.Workspace == "" {
		return fmt.Sprintf("NAME: secrets: [%q], and registrations: %q: workspace: NAME", secret, r.Name)
	}
	return fmt.Sprintf("%q: secrets: [%q]", r.Workspace, secret)
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
