package api

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strings"

	"github.com/go-jose/go-jose/v4"
)

// TokenPrefix is how tokens begin: kalypso_<id>_<secret>.
const TokenPrefix = "kalypso_"

// TokenParts returns the id and the secret of a token; false for what is none.
func TokenParts(token string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(token, TokenPrefix)
	id, secret, found := strings.Cut(rest, "_")
	return id, secret, ok && found && id != "" && secret != ""
}

// Signed is a report as it was signed: who carries it to a hub cannot change it.
type Signed struct {
	Report json.RawMessage `json:"report"`
	// Signature is a JWS (RFC 7515) with detached content, by Ed25519. Its key ID is the id of a
	// token, of which whoever signs has the secret.
	Signature string `json:"signature"`
}

// SignatureHeader is the header of a request that has the signature of the report in its body.
const SignatureHeader = "Kalypso-Signature"

// SigningKey returns the key that the secret of a token stands for. A hub keeps its public key
// alone.
func SigningKey(secret string) ed25519.PrivateKey {
	seed, _ := hkdf.Key(sha256.New, []byte(secret), nil, "kalypso report", ed25519.SeedSize) // 32 bytes are never too many
	return ed25519.NewKeyFromSeed(seed)
}

// Sign signs a report with a token.
func Sign(token string, r *Report) (*Signed, error) {
	id, secret, ok := TokenParts(token)
	if !ok {
		return nil, errors.New("reports are signed with a token of a hub, kalypso_..., and this is none")
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA,
		Key: jose.JSONWebKey{Key: SigningKey(secret), KeyID: id}}, nil)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	jws, err := signer.Sign(data)
	if err != nil {
		return nil, err
	}
	signature, err := jws.DetachedCompactSerialize()
	return &Signed{data, signature}, err
}

// Verify verifies the signature of a report. key returns the public key that goes with the id of a
// token.
func (s *Signed) Verify(key func(id string) (ed25519.PublicKey, error)) (id string, err error) {
	jws, err := jose.ParseDetached(s.Signature, s.Report, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return "", ErrSignature
	}
	id = jws.Signatures[0].Header.KeyID
	public, err := key(id)
	if err != nil {
		return "", err
	}
	if err := jws.DetachedVerify(s.Report, public); err != nil {
		return "", ErrSignature
	}
	return id, nil
}

// ErrSignature is the error where a signature is not that of a report.
var ErrSignature = errors.New("the signature is not that of the report: it was changed after it " +
	"was signed, or the token was made before hubs verified signatures")
