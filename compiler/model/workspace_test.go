package model

import "testing"

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		patterns Patterns
		text     string
		want     bool
	}{
		{nil, "a", false},
		{Patterns{}, "a", false},
		{Patterns{"*"}, "", true},
		{Patterns{"*"}, "apps/Deployment", true},
		{Patterns{"ConfigMap"}, "ConfigMap", true},
		{Patterns{"ConfigMap"}, "ConfigMaps", false},
		{Patterns{"apps/*"}, "apps/Deployment", true},
		{Patterns{"apps/*"}, "apps", false},
		{Patterns{"*/Deployment"}, "apps/Deployment", true},
		{Patterns{"a*b*c"}, "abc", true},
		{Patterns{"a*b*c"}, "aXbYc", true},
		{Patterns{"a*b*c"}, "acb", false},
		{Patterns{"ab*ba"}, "aba", false},
		{Patterns{"*", "!kube-*"}, "kube-system", false},
		{Patterns{"!kube-*", "*"}, "kube-system", false},
		{Patterns{"*", "!kube-*"}, "kubeflow", true},
		{Patterns{"!a"}, "b", false},
	} {
		if got := c.patterns.Allow(c.text); got != c.want {
			t.Errorf("%q allow %q: %t", c.patterns, c.text, got)
		}
	}
}

// TestWorkspaceDigest checks that a change of reviewers does not rebuild anything, and that a
// change of bounds does.
func TestWorkspaceDigest(t *testing.T) {
	one := Workspace{Name: "shop", Namespaces: Patterns{"a"}}
	reviewed, wider := one, one
	reviewed.Owners, reviewed.Description = []string{"@example/shop"}, "The shop."
	wider.Namespaces = Patterns{"a", "b"}
	for _, w := range []*Workspace{&one, &reviewed, &wider} {
		w.identify(nil)
	}
	if one.Digest != reviewed.Digest || one.Digest == wider.Digest {
		t.Errorf("%s, %s, %s", one.Digest, reviewed.Digest, wider.Digest)
	}
}
