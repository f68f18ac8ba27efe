package compiler

import (
	"context"
	"errors"
	"strings"
)

func writeGit(ctx context.Context, r Request, o Output) (b *Build, w *Written, err error) {
	return nil, nil, errors.New(strings.Repeat("x", 1))
}
