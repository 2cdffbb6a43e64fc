
# What is typed, as mperfctl will see it: bash cuts words at = and :, which are part of ours.
# Sets words, and in raw the place of each in COMP_WORDS.
__mperfctl_join() {
	local i joint='^[=:]+$'
	words=() raw=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		if ((i > 0)) && [[ ${COMP_WORDS[i]} =~ $joint || ${COMP_WORDS[i - 1]} =~ $joint ]]; then
			words[${#words[@]} - 1]+=${COMP_WORDS[i]}
		else
			words+=("${COMP_WORDS[i]}") raw+=("$i")
		fi
	done
}

__mperfctl_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -P "$2" -f -- "$1")
}

# Complete a value: what it can be, what is there of it, and what stands before it in its word.
__mperfctl_complete_value() {
	local before=$3
	case $1 in
	@file) __mperfctl_files "$2" "$before" ;;
	@pid)
		[[ $2 == *,* ]] && before+=${2%,*},
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(cd /proc && echo [0-9]*)" -- "${2##*,}")
		;;
	@event | @metric | @topic)
		[[ $2 == *,* ]] && before+=${2%,*},
		mapfile -t COMPREPLY < <(compgen -P "$before" -W "$(__mperfctl_known "${1#@}")" -- "${2##*,}")
		;;
	@any) ;;
	*) mapfile -t COMPREPLY < <(compgen -P "$before" -W "${1#\?}" -- "$2") ;;
	esac
}

# Complete the program that is to run, or its arguments; $1 is its place in COMP_WORDS.
__mperfctl_program() {
	if (($1 == COMP_CWORD)); then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
	elif declare -F _command_offset >/dev/null; then
		_command_offset "$1"
	else
		__mperfctl_files "${COMP_WORDS[COMP_CWORD]}"
	fi
}

# Whether a word can be the value of an option that need not have one.
__mperfctl_is_one_of() {
	local word
	for word in ${1#\?}; do
		[[ ${2%%,*} == "$word" ]] && return 0
	done
	return 1
}

# Complete behind a command: go over its words, since what one is depends on those before it.
__mperfctl_argument() {
	local command=${words[1]} last=$((${#words[@]} - 1)) i=2 value first=
	local runs cur=${words[last]}
	runs=$(__mperfctl_runs "$command")

	for (( ; i < last; i++)); do
		if [[ ${words[i]} == -- ]]; then
			[[ $runs ]] && __mperfctl_program "${raw[i + 1]}"
			return
		elif [[ ${words[i]} != -* ]]; then
			if [[ $runs != anywhere ]]; then
				first=${first:-${words[i]}}
				continue
			fi
			__mperfctl_program "${raw[i]}"
			return
		fi
		value=$(__mperfctl_value "$command" "${words[i]}")
		if [[ $value != \?* && $value ]] ||
			{ [[ $value && $cur != -* ]] && ((i + 1 == last)); } ||
			{ [[ $value ]] && __mperfctl_is_one_of "$value" "${words[i + 1]}"; }; then
			((++i == last)) && __mperfctl_complete_value "$value" "$cur" "" && return
		fi
	done

	if [[ $cur == --*=* ]]; then
		# The name is to be repeated only where bash does not cut the word at =.
		local before=
		[[ ${COMP_WORDS[COMP_CWORD]} == "$cur" ]] && before=${cur%%=*}=
		value=$(__mperfctl_value "$command" "${cur%%=*}")
		__mperfctl_complete_value "${value:-@any}" "${cur#*=}" "$before"
	elif [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(__mperfctl_options "$command")" -- "$cur")
	elif [[ $runs == anywhere ]]; then
		__mperfctl_program "${raw[last]}"
	elif [[ ! $first ]]; then
		value=$(__mperfctl_first "$command")
		__mperfctl_complete_value "${value:-@any}" "$cur" ""
	elif [[ $command == diff || "$command $first" == "schedule check" ]]; then
		__mperfctl_files "$cur" ""
	fi
}

_mperfctl() {
	local words raw
	COMPREPLY=()
	__mperfctl_join
	if ((${#words[@]} == 2)); then
		mapfile -t COMPREPLY < <(compgen -W "$(__mperfctl_commands)" -- "${words[1]}")
	elif [[ ${words[1]} == completion ]]; then
		((${#words[@]} == 3)) && __mperfctl_complete_value "bash zsh --help" "${words[2]}" ""
	elif [[ ${words[1]} == help ]]; then
		((${#words[@]} == 3)) &&
			__mperfctl_complete_value "$(__mperfctl_commands)" "${words[2]}" ""
	else
		__mperfctl_argument
	fi
}
complete -F _mperfctl mperfctl
