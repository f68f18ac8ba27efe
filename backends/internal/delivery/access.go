package delivery

import (
	"github.com/kalypso-io/kalypso/backends"
	"github.com/kalypso-io/kalypso/backends/kubernetes"
	"github.com/kalypso-io/kalypso/compiler/diag"
)

// AccountOf returns the service account that the workspace of an assignment names, else that
// of the reconciler; "" for none.
func AccountOf(a *backends.Assignment, reconciler string) string {
	if a.Bounds != nil && a.Bounds.Reconciler.ServiceAccount != "" {
		return a.Bounds.Reconciler.ServiceAccount
	}
	return reconciler
}

// AccessOf decides as which service account, in a namespace of the reconciler's objects, the
// reconciler applies what it fetches: AccountOf, else one of the assignment's own, which
// AccessOf returns; "" for the reconciler itself. account is that of the reconciler before,
// and the one that counts after.
func AccessOf(a *backends.Assignment, account *string, name, namespace string) (*kubernetes.Access, []diag.Diagnostic) {
	if *account = AccountOf(a, *account); *account != "" {
		return nil, nil
	}
	access, ds := kubernetes.AccessOf(a, name, namespace)
	if access != nil {
		*account = access.Account
	}
	return access, ds
}
