package compiler

import (
	_ "github.com/Masterminds/sprig/v3"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "helm.sh/helm/v3/pkg/action"
	_ "helm.sh/helm/v3/pkg/registry"
	_ "helm.sh/helm/v3/pkg/repo"
	_ "sigs.k8s.io/kustomize/api/krusty"
)
