package child

import "os"

// basic are the variables without which programs do not find their files, their home or their language.
var basic = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ",
	"SystemRoot", "SystemDrive", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP", "PATHEXT", "ComSpec",
}

// Env is the environment for a child: what any program needs and the variables that are named besides,
// as far as they are set here. Everything else stays out, tokens and settings meant for others first
// (A5, T2).
func Env(keep ...string) []string {
	env := []string{}
	for _, name := range append(basic[:len(basic):len(basic)], keep...) {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}
