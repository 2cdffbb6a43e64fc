# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Completion of mperf-platform-check for bash; platforms are those that it lists.
_mperf_platform_check() {
	local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	COMPREPLY=()
	# Readline cuts --show=x60 at the sign.
	[[ $cur == = ]] && cur=
	[[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD - 2]}
	if [[ $before == --show || $before == -s ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$1" --list 2>/dev/null | cut -d" " -f1)" -- "$cur")
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "--list --show --decode --help --version" -- "$cur")
	else
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -d -- "$cur")
	fi
}
complete -F _mperf_platform_check mperf-platform-check
