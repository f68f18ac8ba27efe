package compiler

import (
	_ "github.com/Masterminds/sprig/v3"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "helm.sh/helm/v3/pkg/registry"
	_ "helm.sh/helm/v3/pkg/repo"
)
