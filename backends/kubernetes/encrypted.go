package kubernetes

import (
	"fmt"
	"strings"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
	"github.com/kalypso-io/kalypso/compiler/kubetype"
	"github.com/kalypso-io/kalypso/compiler/model"
)

// Encrypted reports the objects in a document that SOPS has encrypted and nothing decrypts: the
// cluster would get the ciphertext as the value. Custom resources pass, since an operator may decrypt
// them on the cluster. The diagnostics have no position. The assignment is nil for what is for no
// single one.
func Encrypted(a *backends.Assignment, doc model.Value) []diag.Diagnostic {
	if items, isList := listItems(doc); isList {
		var ds []diag.Diagnostic
		for _, item := range items {
			ds = append(ds, Encrypted(a, item)...)
		}
		return ds
	}
	name := strings.TrimSpace(orObject(text(doc, "kind")) + " " + text(doc, "metadata", "name"))
	report := func(hint, format string, args ...any) []diag.Diagnostic {
		return []diag.Diagnostic{diag.New(diag.Encrypted, fmt.Sprintf(format, args...)).Hinting(hint)}
	}
	const instead = "let the manifests refer to a Secret that exists, or to a secret store"
	switch {
	case !kubetype.Encrypted(doc):
		if path := kubetype.Ciphertext(doc); path != "" {
			return report(instead+"; Flux decrypts only whole objects that sops has encrypted",
				"%s of %s is encrypted by SOPS, and without the metadata of SOPS nothing can decrypt it", path, name)
		}
		return nil
	case isCustom(group(text(doc, "apiVersion"))):
		return nil
	case a == nil || !a.Decrypts:
		return report(`let Flux decrypt it, with flux: decryption: {provider: "sops", secretRef: "NAME"}; or `+instead+
			"; or, of a workload, remove render: true if a plugin of the reconciler decrypts what it fetches",
			"%s is encrypted by SOPS, and nothing decrypts it", name)
	case strings.EqualFold(text(doc, "metadata", "annotations", decryptAnnotation), "disabled"):
		return report("remove the annotation", "%s is encrypted by SOPS, and its annotation %s keeps Flux from decrypting it",
			name, decryptAnnotation)
	case text(doc, "sops", "encrypted_comment_regex")+text(doc, "sops", "unencrypted_comment_regex") != "":
		return report(dataOnly, "SOPS has encrypted %s by its comments, which a render does not keep", name)
	case text(doc, "sops", "mac") != "" && encryptsMetadata(doc):
		return report(dataOnly, "SOPS has encrypted the metadata of %s, and could not decrypt what "+
			"kalypso adds to them", name)
	}
	return nil
}

// encryptsMetadata says whether SOPS takes for encrypted what kalypso adds to an object.
func encryptsMetadata(doc model.Value) bool {
	return kubetype.Encrypts(doc, "metadata", "namespace") ||
		kubetype.Encrypts(doc, "metadata", "labels", managedByLabel) ||
		kubetype.Encrypts(doc, "metadata", "annotations", assignmentAnnotation)
}

// decryptAnnotation keeps Flux from decrypting an object, with disabled.
const decryptAnnotation = "kustomize.toolkit.fluxcd.io/decrypt"

// dataOnly is how to encrypt an object so that its metadata stay readable.
const dataOnly = "encrypt nothing else than its data: sops encrypt --encrypted-regex '^(data|stringData)$'"
