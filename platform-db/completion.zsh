#compdef mperf-platform-check
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Completion of mperf-platform-check for zsh; platforms are those that it lists.
_mperf_platform_check_known() {
	local -a known
	known=(${${(f)"$($words[1] --list 2>/dev/null)"}%% *})
	_describe platform known
}
_arguments \
	'(-l --list)'{-l,--list}'[list the platforms]' \
	'(-s --show)'{-s+,--show=}'[print everything known about one platform]:platform:_mperf_platform_check_known' \
	'(-d --decode)'{-d+,--decode=}'[print what a raw code means there]:raw code:' \
	'--help[say how it is used]' \
	'--version[print the version]' \
	'*:folder:_files -/'
