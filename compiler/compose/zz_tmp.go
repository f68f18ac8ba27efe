package compose

import "errors"

func (g *Graph) AppendBinary(b []byte) []byte { return b }
func DecodeGraph(b []byte) (*Graph, error)    { return nil, errors.New("tmp") }
