package helm

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// unstable are the functions of templates whose results differ each time: the time, random
// values, and values derived from them.
var unstable = func() []string {
	functions := worlds()[0].functions()
	for _, name := range unordered {
		delete(functions, name)
	}
	return slices.Sorted(maps.Keys(functions))
}()

// unordered are the functions that return the parts of a map in any order. Many charts sort
// the result.
var unordered = []string{"keys", "values"}

// functions returns the functions of a world, under their names in templates. They accept the
// same arguments as Sprig's functions and return results of the same form.
func (w *world) functions() map[string]any {
	library := sprig.TxtFuncMap()
	dateInZone := library["dateInZone"].(func(string, any, string) string)
	durationRound := library["durationRound"].(func(any) string)
	inZone := func(layout string, date any,
		zone string) string {
		return dateInZone(layout, w.date(date), zone)
	}
	const day = "2006-01-02"
	return map[string]any{
		"now": func() time.Time { return w.now },
		"ago": func(date any) string { return w.timeSince(date).Round(time.Second).String() },
		"durationRound": func(duration any) string {
			if t, ok := duration.(time.Time); ok {
				duration = int64(w.now.Sub(t))
			}
			return durationRound(duration)
		},
		"date":           func(layout string, date any) string { return inZone(layout, date, "Local") },
		"dateInZone":     inZone,
		"date_in_zone":   inZone,
		"htmlDate":       func(date any) string { return inZone(day, date, "Local") },
		"htmlDateInZone": func(date any, zone string) string { return inZone(day, date, zone) },

		"randInt": func(low, high int) int {
			if w.high {
				return high - 1
			}
			return low
		},
		"randAlpha":    func(n int) string { return w.letters(n, "A", "z") },
		"randAlphaNum": func(n int) string { return w.letters(n, "0", "z") },
		"randAscii":    func(n int) string { return w.letters(n, " ", "~") },
		"randNumeric":  func(n int) string { return w.letters(n, "0", "9") },
		"randBytes":    func(n int) string { return base64.StdEncoding.EncodeToString(w.bytes(n)) },
		"uuidv4": func() string {
			digits := w.letters(12, "0", "f")
			return digits[:8] + "-" + digits[:4] + "-4" + digits[:3] + "-" + w.letters(1, "8", "b") +
				digits[:3] + "-" + digits
		},
		"shuffle": func(s string) string {
			letters := strings.Split(s, "")
			slices.Sort(letters)
			w.arrange(letters)
			return strings.Join(letters, "")
		},

		"bcrypt": w.bcrypt,
		"htpasswd": func(user, password string) string {
			if strings.Contains(user, ":") {
				return library["htpasswd"].(func(string, string) string)(user, password)
			}
			return user + ":" + w.bcrypt(password)
		},
		"encryptAES":        w.encryptAES,
		"genPrivateKey":     w.key,
		"genCA":             func(string, int) pair { return w.pair() },
		"genCAWithKey":      func(_ string, _ int, key string) pair { return w.pairOf(key) },
		"genSelfSignedCert": func(string, []any, []any, int) pair { return w.pair() },
		"genSelfSignedCertWithKey": func(_ string, _, _ []any, _ int,
			key string) pair {
			return w.pairOf(key)
		},
		"genSignedCert": func(string, []any, []any, int, any) pair { return w.pair() },
		"genSignedCertWithKey": func(_ string, _, _ []any, _ int, _ any,
			key string) pair {
			return w.pairOf(key)
		},

		"keys": func(dicts ...map[string]any) []string {
			all := []string{}
			for _, d := range dicts {
				all = append(all, w.keys(d)...)
			}
			return all
		},
		"values": func(dict map[string]any) []any {
			all := []any{}
			for _, key := range w.keys(dict) {
				all = append(all, dict[key])
			}
			return all
		},
	}
}

// date returns a date unchanged if Sprig accepts it as a date. For other values it returns the
// current time of the world, as Sprig does.
func (w *world) date(date any) any {
	switch date.(type) {
	case time.Time, *time.Time, int64, int, int32:
		return date
	}
	return w.now
}

// timeSince returns the time that has passed since a date. It returns 0 for values that Sprig does
// not accept as dates.
func (w *world) timeSince(date any) time.Duration {
	switch date := date.(type) {
	case time.Time:
		return w.now.Sub(date)
	case int64:
		return w.now.Sub(time.Unix(date, 0))
	case int:
		return w.now.Sub(time.Unix(int64(date), 0))
	}
	return 0
}

// letters returns n random letters.
func (w *world) letters(n int, low, high string) string {
	if w.high {
		low = high
	}
	return strings.Repeat(low, max(n, 0))
}

// bytes returns n random bytes.
func (w *world) bytes(n int) []byte {
	if w.high {
		return bytes.Repeat([]byte{0xff}, n)
	}
	return make([]byte, n)
}

// keys returns the keys of a map in the world's order.
func (w *world) keys(dict map[string]any) []string {
	keys := slices.Sorted(maps.Keys(dict))
	w.arrange(keys)
	return keys
}

// bcrypt returns a hash with the cost that Sprig uses. If a password has no hash, it returns
// Sprig's message.
func (w *world) bcrypt(password string) string {
	const longest = 72
	if len(password) > longest {
		return sprig.TxtFuncMap()["bcrypt"].(func(string) string)(password)
	}
	return "$2a$10$" + w.letters(53, ".", "z")
}

// encryptAES is Sprig's with another initial vector, so that decryptAES undoes it.
func (w *world) encryptAES(password, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	key := make([]byte, 32)
	copy(key, password)
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	padding := aes.BlockSize - len(text)%aes.BlockSize
	content := append([]byte(text), bytes.Repeat([]byte{byte(padding)}, padding)...)
	initial := w.bytes(aes.BlockSize)
	cipher.NewCBCEncrypter(block, initial).CryptBlocks(content, content)
	return base64.StdEncoding.EncodeToString(append(initial, content...)), nil
}

// pair is a certificate with its key, as templates see it.
type pair struct{ Cert, Key string }

func (w *world) pair() pair { return w.pairOf(w.pem("RSA PRIVATE KEY")) }

// pairOf returns a certificate for a key, together with the same key.
func (w *world) pairOf(key string) pair {
	return pair{w.pem("CERTIFICATE"), strings.TrimSpace(key) + "\n"}
}

// key returns a private key, or Sprig's message if the kind of key is unknown.
func (w *world) key(kind string) string {
	switch kind {
	case "", "rsa":
		return w.pem("RSA PRIVATE KEY")
	case "dsa":
		return w.pem("DSA PRIVATE KEY")
	case "ecdsa":
		return w.pem("EC PRIVATE KEY")
	case "ed25519":
		return w.pem("PRIVATE KEY")
	}
	return "Unknown type " + kind
}

// pem returns text in the form of a PEM block of a kind. In a world whose dice fall high, the
// block is also longer.
func (w *world) pem(kind string) string {
	body := w.letters(64, "A", "/")
	if w.high {
		body += "\n" + body
	}
	return fmt.Sprintf("-----BEGIN %s-----\n%s\n-----END %[1]s-----\n", kind, body)
}
