package fetch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// version is a version with its name, such as v1.2.3.
type version struct {
	*semver.Version
	name string
}

// versions returns the names that are versions, newest first. If names have equal versions,
// the longer name comes first, and then they are in alphabetical order. So the order does
// not depend on the server's order.
func versions(names []string, parse func(string) (*semver.Version, error)) []version {
	var out []version
	for _, name := range names {
		if v, err := parse(name); err == nil {
			out = append(out, version{v, name})
		}
	}
	slices.SortFunc(out, func(a, b version) int {
		return cmp.Or(b.Compare(a.Version), cmp.Compare(len(b.name), len(a.name)),
			cmp.Compare(b.name, a.name))
	})
	return out
}

// strictly parses a full version, with or without a leading v, as Flux does for the tags of
// git and OCI.
func strictly(name string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(name, "v"))
}

// newest returns the name of the newest version in a range. As in Helm and Flux,
// pre-releases match only if the range has one.
func newest(constraint string, names []string, parse func(string) (*semver.Version, error)) (string,
	error) {
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return "", fmt.Errorf("%q is no range of versions, such as \">=1.2 <2\": %w", constraint, err)
	}
	all := versions(names, parse)
	for _, v := range all {
		if c.Check(v.Version) {
			return v.name, nil
		}
	}
	problem := fmt.Sprintf("no version is in the range %s", constraint)
	if len(all) > 0 && all[0].Prerelease() != "" {
		problem += " (pre-releases are only in ranges that name one, such as >=1.2.0-0)"
	}
	return "", &missingError{problem: problem, there: versionNames(all)}
}

func versionNames(all []version) []string {
	names := make([]string, 0, min(len(all), maxThere))
	for _, v := range all[:min(len(all), maxThere)] {
		names = append(names, v.name)
	}
	return names
}

// likely returns alternatives for a missing name: versions with the newest first, then the
// others by letters.
func likely(names []string) []string {
	all := versions(names, strictly)
	out := versionNames(all)
	for _, name := range slices.Sorted(slices.Values(names)) {
		if _, err := strictly(name); err != nil && len(out) < maxThere {
			out = append(out, name)
		}
	}
	return out
}
