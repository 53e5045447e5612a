package scrub

import "slices"

// ownRules are the package's own rules with words. Rules without words are numbers (number.go, iban.go) and
// addresses (address.go). The rules of gitleaks come after these; see vendorRules.
func ownRules() []*rule {
	return slices.Concat(personalRules(), keyRules(), passwordRules())
}

// personalRules find personal data (personal.go).
func personalRules() []*rule {
	return []*rule{
		{family: Email, name: "email", words: []string{"@"}, scan: email},
		{family: HomePath, name: "home_path", words: []string{"/home/", "/users/"}, scan: homePath},
		{family: HomePath, name: "windows_home_path", words: []string{`\users\`}, scan: windowsHomePath},
		{family: SSN, name: "ssn_named", words: []string{"ssn", "social security"}, scan: namedSSN},
	}
}

// keyRules find keys with a form of their own (key.go, prefix.go).
func keyRules() []*rule {
	return []*rule{
		{family: JWT, name: "jwt", words: []string{"eyj"}, scan: jsonWebToken},
		{family: PrivateKey, name: "private_key", words: []string{"-----begin"}, scan: privateKey},
		{family: PrivateKey, name: "putty_key", words: []string{"putty-user-key-file"}, scan: puttyKey},
		{family: PrivateKey, name: "ssh_public_key", words: sshKeyTypes, scan: sshPublicKey},
		{family: AWS, name: "aws_access_key_id", words: awsPrefixes, scan: awsKeyID},
		{family: AWS, name: "aws_secret_key", words: []string{"aws"}, scan: awsSecret},
		{family: GitHub, name: "github_token", words: githubPrefixes, scan: githubToken},
		{family: VendorKey, name: "prefixed_key", words: prefixes, scan: prefixed},
		{family: VendorKey, name: "webhook", words: webhookWords(), scan: webhook},
		{family: VendorKey, name: "telegram_bot", words: []string{":aa"}, scan: telegramBot},
	}
}

// passwordRules find secrets by their place: in URLs (url.go), in headers and commands (header.go), behind a
// name (assign.go, name.go and judge.go).
func passwordRules() []*rule {
	return []*rule{
		{family: Password, name: "url_password", words: []string{"://"}, scan: urlPassword},
		{family: Password, name: "login", words: []string{"@"}, scan: login},
		{family: Password, name: "query", words: queryWords(secretParams), scan: queryParam(isSigned)},
		{family: Password, name: "query_drawn", words: queryWords(drawnParams), scan: queryParam(isDrawn)},
		{family: Password, name: "authorization_header", words: []string{"authorization"}, scan: authorization},
		{family: Password, name: "authorization", words: []string{"bearer", "basic"}, scan: bearer},
		{family: Password, name: "cookie", words: []string{"cookie"}, scan: cookie},
		{family: Password, name: "command_line", words: []string{"-u ", "--user", "-u\","}, scan: curlUser},
		{family: Password, name: "sshpass", words: []string{"sshpass -p"}, scan: sshpass},
		{family: Password, name: "sql_password", words: []string{"identified"}, scan: identifiedBy},
		{family: Password, name: "assignment", words: passwordWords, scan: assigned(passwordName)},
		{family: Password, name: "assignment", words: secretWords, scan: assigned(secretName)},
		{family: Password, name: "assignment", words: weakWords, scan: assigned(weakName)},
	}
}
