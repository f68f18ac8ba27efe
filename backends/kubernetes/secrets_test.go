package kubernetes

import (
	"strings"
	"testing"

	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

const externalSecretService = `{"secrets": {"externalSecret": {"storeKind": "ClusterSecretStore", "refreshInterval": "1h"}}}`

// classService returns a service with a SecretProviderClass of a provider.
func classService(provider string) string {
	return `{"secrets": {"secretProviderClass": {"provider": "` + provider + `", "parameters": {"at": "https://$(store).example"}}}}`
}

func TestSecrets(t *testing.T) {
	password := backends.Secret{Name: "DB_PASSWORD", Store: "main", Key: "prod/db", Property: "password"}
	user := backends.Secret{Name: "DB_USER", Store: "main", Key: "prod/db", Property: "db-user", Version: "AWSPREVIOUS"}
	token := backends.Secret{Name: "api.token", Store: "main", Key: "token", Version: "2"}
	other := backends.Secret{Name: "OTHER", Store: "spare", Key: "x", Property: "field"}
	for _, test := range []struct {
		name    string
		service string
		secrets []backends.Secret
		want    string
	}{
		{"external secret", externalSecretService, []backends.Secret{password, token}, `
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  name: platform-secrets
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
spec:
  refreshInterval: 1h
  secretStoreRef:
    kind: ClusterSecretStore
    name: main
  target:
    name: platform-secrets
    creationPolicy: Owner
  data:
  - secretKey: DB_PASSWORD
    remoteRef:
      key: prod/db
      property: password
      conversionStrategy: Default
      decodingStrategy: None
      metadataPolicy: None
  - secretKey: api.token
    remoteRef:
      key: token
      version: "2"
      conversionStrategy: Default
      decodingStrategy: None
      metadataPolicy: None
`},
		{"external secret of two stores", externalSecretService, []backends.Secret{password, other}, `
    sourceRef:
      storeRef:
        kind: ClusterSecretStore
        name: spare
`},
		{"azure", classService("azure"), []backends.Secret{token}, `
apiVersion: secrets-store.csi.x-k8s.io/v1
kind: SecretProviderClass
metadata:
  name: platform-secrets
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
spec:
  provider: azure
  parameters:
    at: https://main.example
    objects: |
      array:
      - |
        objectName: token
        objectType: secret
        objectAlias: api.token
        objectVersion: "2"
  secretObjects:
  - secretName: platform-secrets
    type: Opaque
    data:
    - objectName: api.token
      key: api.token
`},
		{"vault", classService("vault"), []backends.Secret{password, {Name: "OLD", Store: "main", Key: "prod/db", Property: "password", Version: "3"}}, `
    objects: |
      - objectName: DB_PASSWORD
        secretPath: prod/db
        secretKey: password
      - objectName: OLD
        secretPath: prod/db?version=3
        secretKey: password
`},
		{"gcp", classService("gcp"), []backends.Secret{password, token, {Name: "z", Store: "main", Key: "projects/p/secrets/s/versions/7"}}, `
    secrets: |
      - resourceName: projects/main/secrets/prod/db/versions/latest
        path: DB_PASSWORD
        extractJSONKey: password
      - resourceName: projects/main/secrets/token/versions/2
        path: api.token
      - resourceName: projects/p/secrets/s/versions/7
        path: z
`},
		{"aws", classService("aws"), []backends.Secret{
			password,
			{Name: "DB_URL", Store: "main", Key: "prod/db", Property: "db.url"},
			user,
			{Name: "WHOLE", Store: "main", Key: "arn:aws:secretsmanager:eu-west-1:1:secret:w", Version: "01234567-89ab-cdef-0123-456789abcdef"},
		}, `
    objects: |
      - objectName: prod/db
        objectType: secretsmanager
        jmesPath:
        - path: password
          objectAlias: DB_PASSWORD
        - path: db.url
          objectAlias: DB_URL
      - objectName: prod/db
        objectType: secretsmanager
        objectAlias: DB_USER.json
        objectVersionLabel: AWSPREVIOUS
        jmesPath:
        - path: '"db-user"'
          objectAlias: DB_USER
      - objectName: arn:aws:secretsmanager:eu-west-1:1:secret:w
        objectAlias: WHOLE
        objectVersion: 01234567-89ab-cdef-0123-456789abcdef
`},
		{"classes of two stores", classService("vault"), []backends.Secret{password, other}, `
  name: platform-secrets-spare
  namespace: dev-large-hello-test
  labels:
    app.kubernetes.io/managed-by: kalypso
  annotations:
    kalypso.io/assignment: dev/large/hello-test
spec:
  provider: vault
  parameters:
    at: https://spare.example
    objects: |
      - objectName: OTHER
        secretPath: x
        secretKey: field
  secretObjects:
  - secretName: platform-secrets-spare
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := assignment(t, test.service)
			a.Secrets = test.secrets
			files, objects, ds := Workspace(a)
			if len(ds) > 0 {
				t.Fatal(ds)
			}
			if got := string(files[0].Data); !strings.Contains(got, test.want) {
				t.Errorf("got:\n%s\nwant in it:\n%s", got, test.want)
			}
			checkObjects(t, files, objects)
		})
	}
}

func TestNoSecretsNoObject(t *testing.T) {
	for _, service := range []string{externalSecretService, classService("aws")} {
		files, _, ds := Workspace(assignment(t, service))
		if len(ds) > 0 || strings.Contains(string(files[0].Data), "ecret") {
			t.Errorf("%v\n%s", ds, files[0].Data)
		}
	}
}

func TestUndeliverableSecrets(t *testing.T) {
	whole := backends.Secret{Name: "DB", Store: "main", Key: "db"}
	part := backends.Secret{Name: "DB", Store: "main", Key: "db", Property: "password"}
	for _, test := range []struct {
		name    string
		service string
		secret  backends.Secret
		message string
	}{
		{"no secrets", plainService, whole, "DB refers to a secret, and the namespace service does not say"},
		{"bad key", externalSecretService, backends.Secret{Name: `db."pass word"`, Store: "main", Key: "k"}, "cannot be a key of a Secret"},
		{"azure property", classService("azure"), part, "property password"},
		{"vault whole", classService("vault"), whole, "all of a secret"},
	} {
		a := assignment(t, test.service)
		a.Secrets = []backends.Secret{test.secret}
		_, _, ds := Workspace(a)
		if len(ds) != 1 || ds[0].Code != diag.UndeliverableSecret || ds[0].Path != test.secret.Name || ds[0].Hint == "" || !strings.Contains(ds[0].Message, test.message) {
			t.Errorf("%s: got %+v", test.name, ds)
		}
	}
	a := assignment(t, `{"secrets": {"secretProviderClass": {"provider": "gcp", "parameters": {"secrets": "mine"}}}}`)
	a.Secrets = []backends.Secret{whole}
	if _, _, ds := Workspace(a); len(ds) != 1 || ds[0].Code != diag.BadSpec {
		t.Errorf("parameters that kalypso makes: got %+v", ds)
	}
}
