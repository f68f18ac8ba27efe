package delivery

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/model"
	"github.com/kalypso-io/kalypso/internal/lazyregexp"
)

// overlay returns the source that holds an overlay, at the overlay's path, with
// the changes to it, which kustomize can make.
func overlay(a *backends.Assignment, k *model.Kustomize) (Source, []diag.Diagnostic) {
	var ds []diag.Diagnostic
	refuse := func(field, message, hint string) {
		ds = append(ds, Unsupported(a, "kustomize."+field, message).Hinting(hint))
	}
	for i, p := range k.Patches {
		if problem, hint := badPatch(p); problem != "" {
			refuse(fmt.Sprintf("patches[%d]", i), problem, hint)
		}
	}
	for i, image := range k.Images {
		if problem, hint := badImage(image); problem != "" {
			refuse(fmt.Sprintf("images[%d]", i), problem, hint)
		}
	}
	if k.NamePrefix != "" && !namePrefix.MatchString(k.NamePrefix) {
		refuse("namePrefix", fmt.Sprintf("no object can have a name that begins with %q", k.NamePrefix),
			"use lower case letters, digits, dashes and dots")
	}
	s := Source{Overlay: k}
	switch {
	case k.Git != nil:
		git := *k.Git
		git.Path = k.Path
		s.Git, s.Field = &git, "kustomize.git"
	case k.OCI != nil:
		oci := *k.OCI
		oci.Path = k.Path
		s.OCI, s.Field = &oci, "kustomize.oci"
	default:
		ds = append(ds, Unsupported(a, "kustomize", "the overlay has no source"))
	}
	return s, ds
}

// namePrefix begins the name of an object (RFC 1123).
var namePrefix = lazyregexp.New(`^[a-z0-9][a-z0-9.-]*$`)

// badPatch says what kustomize would refuse a patch for; "" for nothing.
func badPatch(p model.KustomPatch) (problem, hint string) {
	var patch any
	if err := yaml.Unmarshal([]byte(p.Patch), &patch); err != nil {
		return "the patch cannot be read: " + firstLine(err), "write a strategic merge patch, or a " +
			"list of JSON 6902 operations"
	}
	for _, field := range []string{"name", "namespace"} {
		if _, err := regexp.Compile(p.Target[field]); err != nil {
			return fmt.Sprintf("the target's %s is no regular expression: %s", field, firstLine(err)), ""
		}
	}
	switch patch := patch.(type) {
	case []any:
		if len(p.Target) == 0 {
			return "a JSON 6902 patch does not say which objects it changes", "name them with target"
		}
		for _, operation := range patch {
			o, _ := operation.(map[string]any)
			if op, _ := o["op"].(string); op == "" {
				return "an operation of the JSON 6902 patch has no op", "write op: add, remove, replace, move, copy or test"
			}
		}
	case map[string]any:
		metadata, _ := patch["metadata"].(map[string]any)
		if len(p.Target) == 0 && (patch["kind"] == nil || patch["apiVersion"] == nil || metadata["name"] == nil) {
			return "a strategic merge patch names the object that it changes, by apiVersion, kind and " +
				"metadata.name", "name it there, or the objects with target"
		}
	default:
		return "the patch is neither a strategic merge patch nor a list of JSON 6902 operations", ""
	}
	return "", ""
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// An image's name has no tag and no digest: a registry with its port, and a path
// (https://pkg.go.dev/github.com/distribution/reference).
var (
	imageName = lazyregexp.New(`^([A-Za-z0-9.-]+(:[0-9]+)?/)?[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
	imageTag  = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// badImage says why an image cannot be replaced; "" where it can.
func badImage(i model.KustomImage) (problem, hint string) {
	for _, name := range []string{i.Name, i.NewName} {
		if name != "" && !imageName.MatchString(name) {
			return fmt.Sprintf("%q is no name of an image", name), "a name has no tag and no digest: those are newTag and digest"
		}
	}
	switch {
	case i.NewTag != "" && !imageTag.MatchString(i.NewTag):
		return fmt.Sprintf("%q is no tag of an image", i.NewTag), ""
	case i.NewName == "" && i.NewTag == "" && i.Digest == "":
		return "nothing of the image " + i.Name + " is replaced", "give newName, newTag or digest"
	case i.NewTag != "" && i.Digest != "":
		return "the image " + i.Name + " gets a tag and a digest, and kustomize takes the digest alone", "remove newTag"
	}
	return "", ""
}
