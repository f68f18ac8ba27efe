package schedule

import (
	"github.com/Masterminds/semver/v3"

	"github.com/kalypso-io/kalypso/compiler/model"
)

// highest returns the policies whose pins apply. These are all policies, unless each of
// them prefers the highest version. In that case it returns the policy with the highest
// version, or several with the same version.
func highest(policies []*model.SchedulingPolicy) []*model.SchedulingPolicy {
	var out []*model.SchedulingPolicy
	var best *semver.Version
	for _, p := range policies {
		v, err := semver.NewVersion(versionOf(p.Pin))
		if !p.Pin.Highest || err != nil {
			return policies
		}
		switch {
		case best == nil || v.GreaterThan(best):
			best, out = v, []*model.SchedulingPolicy{p}
		case v.Equal(best):
			out = append(out, p)
		}
	}
	return out
}

// versionOf returns the version to which a pin sets a target. This is the version of the
// workload, or else the version or the tag of its chart or source.
func versionOf(p *model.Pin) string {
	if p.Version != "" || p.Manifests == nil {
		return p.Version
	}
	for _, path := range [][]string{{"helm", "version"}, {"git", "tag"}, {"oci", "tag"},
		{"helm", "git", "tag"}, {"kustomize", "git", "tag"}, {"kustomize", "oci", "tag"}} {
		v, ok := *p.Manifests, true
		for _, name := range path {
			if v, ok = v.Lookup(name); !ok {
				break
			}
		}
		if ok {
			return v.Text()
		}
	}
	return ""
}
