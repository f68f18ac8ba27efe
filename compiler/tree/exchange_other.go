//go:build !linux && !darwin

package tree

import "errors"

func exchangeAt(int, string, int, string) error { return errors.ErrUnsupported }
