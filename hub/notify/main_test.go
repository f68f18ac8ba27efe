package notify

import (
	"testing"

	"github.com/kalypso-io/kalypso/internal/testing/isolated"
)

func TestMain(m *testing.M) { isolated.Main(m) }
