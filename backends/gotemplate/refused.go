package gotemplate

import "strings"

// refused are the functions of sprig that templates may not use, with the reason. The result of a
// build must depend only on the platform.
var refused = func() map[string]string {
	all := map[string]string{}
	for why, names := range map[string]string{
		"reads the environment variables of whoever builds": "env expandenv",
		"asks the network": "getHostByName",
		"depends on the clock or the time zone of whoever builds": "now ago date dateInZone " +
			"date_in_zone dateModify date_modify mustDateModify " +
			"must_date_modify htmlDate htmlDateInZone toDate mustToDate unixEpoch durationRound",
		"gives something else each time": "randAlpha randAlphaNum randAscii randNumeric randBytes " +
			"randInt shuffle uuidv4 bcrypt htpasswd " +
			"encryptAES genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey " +
			"genSignedCert genSignedCertWithKey",
		"makes or reads secrets, which no file may hold in plain text": "derivePassword decryptAES " +
			"buildCustomCert",
		"depends on the operating system of whoever builds": "osBase osClean osDir osExt osIsAbs",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = why
		}
	}
	return all
}()

// instead describes the replacement of a refused function.
func instead(name string) string {
	switch why := refused[name]; {
	case strings.HasPrefix(name, "os"):
		return "use " + strings.ToLower(name[2:3]) + name[3:] + ", which takes paths with slashes"
	case strings.HasPrefix(why, "reads"), strings.HasPrefix(why, "asks"),
		strings.HasPrefix(why, "depends"):
		return "say it in a config, and read it from .ConfigData"
	}
	return "keep secrets in a secret store, and refer to them with schema.#Secret; make names of " +
		"what they belong to, for instance with hash"
}
