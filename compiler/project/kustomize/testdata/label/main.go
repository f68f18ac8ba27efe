// Command label prints what Kustomize labels objects with in a program that renders
// overlays: a test has no modules in which Kustomize could look for its version.
package main

import (
	"fmt"

	"github.com/kalypso-io/kalypso/compiler/project/kustomize"
)

func main() {
	objects, err := kustomize.Render(kustomize.Request{Files: map[string][]byte{
		"kustomization.yaml": []byte("resources: [a.yaml]\nbuildMetadata: [managedByLabel]\n"),
		"a.yaml":             []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"),
	}})
	if err != nil {
		panic(err)
	}
	metadata, _ := objects[0].Value.Lookup("metadata")
	labels, _ := metadata.Lookup("labels")
	label, _ := labels.Lookup("app.kubernetes.io/managed-by")
	fmt.Print(label.Text())
}
